#include "trainer/workloads/qwen_vggt/chat.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tj::trainer {
namespace {

constexpr std::string_view kImageMark = "<image>";
constexpr std::string_view kVideoMark = "<video>";
constexpr std::size_t kHeaderTokens = 3;  // <|im_start|>, "assistant", the end of the line

Error wrong(std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = "conversation"};
}

/// The first mark of a text from `from` on.
struct Mark {
  std::size_t at = 0;
  bool is_video = false;

  std::size_t size() const { return (is_video ? kVideoMark : kImageMark).size(); }
};

std::optional<Mark> next_mark(std::string_view text, std::size_t from) {
  const auto image = text.find(kImageMark, from), video = text.find(kVideoMark, from);
  if (image == text.npos && video == text.npos) return std::nullopt;
  return Mark{.at = std::min(image, video), .is_video = video < image};
}

/// Puts the ids of turns behind each other. Text between two special tokens is encoded as one.
class ChatWriter {
 public:
  ChatWriter(std::span<const ChatVision> vision, const ChatIds& ids, const TextEncoder& encode)
      : vision_(vision), ids_(ids), encode_(encode) {}

  Result<void> add(const ChatTurn& turn) {
    const auto first = made_.ids.size();
    made_.ids.push_back(ids_.turn_begin);
    pending_ = std::string(to_string(turn.role)) + "\n";
    if (turn.role == ChatRole::user) {
      if (const auto added = add_marked(turn.text); !added) return added.error();
    } else {
      pending_ += turn.text;
    }
    flush();
    made_.ids.push_back(ids_.turn_end);
    pending_ = "\n";
    flush();
    label_from(first, turn.role == ChatRole::assistant);
    return {};
  }

  void open_turn() {
    made_.ids.push_back(ids_.turn_begin);
    pending_ = std::string(to_string(ChatRole::assistant)) + "\n";
    flush();
    label_from(made_.labels.size(), false);
  }

  std::size_t vision_used() const { return next_vision_; }
  ChatTokens take() { return std::move(made_); }

 private:
  Result<void> add_marked(std::string_view text) {
    std::size_t from = 0;
    while (const auto mark = next_mark(text, from)) {
      pending_ += text.substr(from, mark->at - from);
      if (const auto added = add_vision(mark->is_video); !added) return added.error();
      from = mark->at + mark->size();
    }
    pending_ += text.substr(from);
    return {};
  }

  Result<void> add_vision(bool is_video) {
    if (next_vision_ == vision_.size())
      return wrong("has more marks than its " + std::to_string(vision_.size()) +
                   " pictures and videos");
    const auto& vision = vision_[next_vision_++];
    if (vision.is_video != is_video)
      return wrong("mark " + std::to_string(next_vision_) + " is " +
                   std::string(is_video ? kVideoMark : kImageMark) + ", and " +
                   (is_video ? "a picture" : "a video") + " comes there");
    flush();
    made_.ids.push_back(ids_.vision.begin);
    made_.ids.insert(made_.ids.end(), static_cast<std::size_t>(vision.tokens),
                     is_video ? ids_.vision.video : ids_.vision.image);
    made_.ids.push_back(ids_.vision.end);
    return {};
  }

  void flush() {
    if (pending_.empty()) return;
    const auto encoded = encode_(pending_);
    made_.ids.insert(made_.ids.end(), encoded.begin(), encoded.end());
    pending_.clear();
  }

  void label_from(std::size_t first, bool is_learned) {
    for (auto at = first; at < made_.ids.size(); ++at)
      made_.labels.push_back(is_learned && at - first >= kHeaderTokens ? made_.ids[at] : kNoLabel);
  }

  std::span<const ChatVision> vision_;
  const ChatIds& ids_;
  const TextEncoder& encode_;
  std::size_t next_vision_ = 0;
  std::string pending_;
  ChatTokens made_;
};

}  // namespace

const char* to_string(ChatRole role) {
  switch (role) {
    case ChatRole::system: return "system";
    case ChatRole::user: return "user";
    case ChatRole::assistant: return "assistant";
  }
  return "user";
}

std::int64_t ChatTokens::learned() const {
  return std::ranges::count_if(labels, [](auto label) { return label != kNoLabel; });
}

Result<ChatTokens> chat_tokens(std::span<const ChatTurn> turns, std::span<const ChatVision> vision,
                               const ChatIds& ids, const TextEncoder& encode, ChatEnd end) {
  if (turns.empty()) return wrong("has no turns");
  const bool has_answer = std::ranges::any_of(
      turns, [](const ChatTurn& turn) { return turn.role == ChatRole::assistant; });
  if (end == ChatEnd::complete && !has_answer)
    return wrong("has no turn of the assistant: there is nothing to learn");
  ChatWriter writer(vision, ids, encode);
  if (turns.front().role != ChatRole::system)
    if (const auto added = writer.add({ChatRole::system, std::string(kDefaultSystem)}); !added)
      return added.error();
  for (const auto& turn : turns)
    if (const auto added = writer.add(turn); !added) return added.error();
  if (writer.vision_used() < vision.size())
    return wrong("has " + std::to_string(writer.vision_used()) + " marks for its " +
                 std::to_string(vision.size()) + " pictures and videos");
  if (end == ChatEnd::open) writer.open_turn();
  return writer.take();
}

std::vector<ChatTarget> chat_targets(std::span<const std::int32_t> labels) {
  std::vector<ChatTarget> targets;
  for (std::size_t at = 1; at < labels.size(); ++at)
    if (labels[at] != kNoLabel)
      targets.push_back({.place = static_cast<std::int64_t>(at) - 1, .id = labels[at]});
  return targets;
}

}  // namespace tj::trainer
