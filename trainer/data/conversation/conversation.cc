#include "trainer/data/conversation/conversation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "trainer/data/lerobot/json_place.h"

namespace tj::trainer {
namespace {

constexpr std::pair<std::string_view, Speaker> kSpeakers[] = {
    {"human", Speaker::user},      {"user", Speaker::user},     {"gpt", Speaker::assistant},
    {"model", Speaker::assistant}, {"system", Speaker::system}, {"assistant", Speaker::assistant},
};

std::runtime_error flaw(const std::string& what) { return std::runtime_error(what); }

Speaker speaker_of(const JsonPlace& place) {
  const auto name = place.text();
  for (const auto& [known, speaker] : kSpeakers)
    if (known == name) return speaker;
  throw place.wrong("must be human, user, gpt, assistant, model or system");
}

JsonPlace either(const JsonPlace& object, const char* first, const char* second) {
  return object.has(first) || !object.has(second) ? object.at(first) : object.at(second);
}

/// The first mark of a text from `from` on.
struct Mark {
  std::size_t at = 0;
  bool is_video = false;
  std::size_t size() const { return (is_video ? kVideoMark : kImageMark).size(); }
  std::size_t end() const { return at + size(); }
};
std::optional<Mark> next_mark(std::string_view text, std::size_t from) {
  for (auto at = text.find('<', from); at != text.npos; at = text.find('<', at + 1)) {
    const auto rest = text.substr(at);
    if (rest.starts_with(kImageMark)) return Mark{.at = at, .is_video = false};
    if (rest.starts_with(kVideoMark)) return Mark{.at = at, .is_video = true};
  }
  return std::nullopt;
}

/// Calls `take` with each mark, the kind of turn that has them given.
template <typename Take>
void each_mark(const std::vector<SpokenTurn>& turns, const Take& take) {
  for (const auto& turn : turns) {
    if (turn.speaker != Speaker::user) continue;
    for (auto mark = next_mark(turn.text, 0); mark; mark = next_mark(turn.text, mark->end()))
      take(*mark);
  }
}

std::size_t mark_count(const std::vector<SpokenTurn>& turns) {
  std::size_t count = 0;
  each_mark(turns, [&count](const Mark&) { ++count; });
  return count;
}

class ConversationParser {
 public:
  ConversationParser(const nlohmann::json& document, bool is_open)
      : root_(document, ""), is_open_(is_open) {}

  Conversation parse() {
    if (!document().is_object()) throw flaw("is no JSON object");
    take_list("image", pictures_);
    take_list("images", pictures_);
    take_list("video", videos_);
    take_list("videos", videos_);
    const char* const key = root_.has("conversations") ? "conversations" : "messages";
    if (!root_.has(key)) throw flaw("has neither conversations nor messages");
    root_.at(key).each([this](const JsonPlace& turn) { take_turn(turn); });
    if (is_open_) leave_open(key);
    show_before_all();
    match();
    if (!is_open_) check();
    return std::move(made_);
  }

 private:
  const nlohmann::json& document() const { return root_.value(); }

  void take_list(const char* name, std::vector<std::string>& into) const {
    if (!root_.has(name)) return;
    const auto place = root_.at(name);
    if (!place.value().is_array()) return into.push_back(place.text());
    place.each([&into](const JsonPlace& path) { into.push_back(path.text()); });
  }

  void take_turn(const JsonPlace& turn) {
    const auto speaker = speaker_of(either(turn, "from", "role"));
    const auto said = either(turn, "value", "content");
    SpokenTurn made{.speaker = speaker, .text = {}};
    if (!said.value().is_array())
      made.text = said.text();
    else
      said.each([&](const JsonPlace& part) { made.text += part_text(part, speaker); });
    made_.turns.push_back(std::move(made));
  }

  /// A path in a part stands before those that its mark would else take.
  std::string part_text(const JsonPlace& part, Speaker speaker) {
    const auto type = part.at("type").text();
    if (type == "text") return part.at("text").text();
    if (type != "image" && type != "video")
      throw part.at("type").wrong("must be text, image or video");
    if (speaker != Speaker::user)
      throw part.at("type").wrong("must be text where it is not the user who speaks");
    auto& list = type == "image" ? pictures_ : videos_;
    auto& used = type == "image" ? part_pictures_ : part_videos_;
    if (part.has(type)) list.insert(list.begin() + used++, part.at(type).text());
    return std::string(type == "image" ? kImageMark : kVideoMark);
  }

  void leave_open(const std::string& key) {
    auto& turns = made_.turns;
    while (!turns.empty() && turns.back().speaker == Speaker::assistant) turns.pop_back();
    if (turns.empty() || turns.back().speaker != Speaker::user)
      throw flaw(key + " has no turn of the user to be answered");
  }

  /// LLaVA's rule for data without marks.
  void show_before_all() {
    if (mark_count(made_.turns) > 0 || pictures_.size() + videos_.size() == 0) return;
    const auto first = std::ranges::find(made_.turns, Speaker::user, &SpokenTurn::speaker);
    if (first == made_.turns.end()) return;
    std::string marks;
    for (std::size_t i = 0; i < videos_.size(); ++i) marks += std::string(kVideoMark) + "\n";
    for (std::size_t i = 0; i < pictures_.size(); ++i) marks += std::string(kImageMark) + "\n";
    first->text = marks + first->text;
  }

  void match() {
    std::size_t pictures = 0, videos = 0;
    each_mark(made_.turns, [&](const Mark& mark) {
      auto& next = mark.is_video ? videos : pictures;
      const auto& list = mark.is_video ? videos_ : pictures_;
      if (next < list.size())
        made_.shown.push_back({.path = list[next], .is_video = mark.is_video});
      ++next;
    });
    check_count(kImageMark, pictures, pictures_.size(), "pictures");
    check_count(kVideoMark, videos, videos_.size(), "videos");
  }

  static void check_count(std::string_view mark, std::size_t marks, std::size_t files,
                          const std::string& what) {
    if (marks == files) return;
    throw flaw("has " + std::to_string(marks) + " marks " + std::string(mark) + " and " +
               std::to_string(files) + " " + what + ": each needs the other");
  }

  void check() const {
    if (std::ranges::find(made_.turns, Speaker::assistant, &SpokenTurn::speaker) ==
        made_.turns.end())
      throw flaw("has no answer (a turn of gpt or assistant): there is nothing to learn");
  }

  JsonPlace root_;
  bool is_open_;
  std::vector<std::string> pictures_, videos_;
  std::ptrdiff_t part_pictures_ = 0, part_videos_ = 0;
  Conversation made_;
};

/// `text` without the marks that `keeps` says no of, in their order.
template <typename Keeps>
std::string without_marks(std::string_view text, const Keeps& keeps) {
  std::string made;
  std::size_t from = 0;
  while (const auto mark = next_mark(text, from)) {
    const bool is_kept = keeps();
    made += text.substr(from, (is_kept ? mark->end() : mark->at) - from);
    from = mark->end();
    if (!is_kept && from < text.size() && text[from] == '\n') ++from;
  }
  return made + std::string(text.substr(from));
}

Result<Conversation> parsed(std::string_view text, bool is_open) try {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded())
    return Error{.code = Code::invalid, .message = "is no JSON (cut short?)", .subject = {}};
  return ConversationParser(document, is_open).parse();
} catch (const std::exception& failure) {
  return Error{.code = Code::invalid, .message = failure.what(), .subject = {}};
}

}  // namespace

Result<Conversation> conversation_from(std::string_view text) { return parsed(text, false); }
Result<Conversation> open_conversation_from(std::string_view text) { return parsed(text, true); }

void keep_newest_pictures(Conversation& conversation, std::int64_t history_max) {
  auto& shown = conversation.shown;
  auto too_many = std::ranges::count(shown, false, &ShownFile::is_video) - 1 - history_max;
  const bool has_all_marks = mark_count(conversation.turns) == shown.size();
  if (too_many <= 0 || !has_all_marks) return;
  std::vector<bool> keeps;
  for (const auto& file : shown) keeps.push_back(file.is_video || too_many-- <= 0);
  std::size_t next = 0;
  for (auto& turn : conversation.turns)
    if (turn.speaker == Speaker::user)
      turn.text = without_marks(turn.text, [&] { return keeps[next++]; });
  std::size_t at = 0;
  std::erase_if(shown, [&](const ShownFile&) { return !keeps[at++]; });
}

bool cut_behind_answer(Conversation& conversation, std::size_t turns) {
  auto& all = conversation.turns;
  all.resize(std::min(all.size(), turns));
  while (!all.empty() && all.back().speaker != Speaker::assistant) all.pop_back();
  conversation.shown.resize(std::min(conversation.shown.size(), mark_count(all)));
  return !all.empty();
}

}  // namespace tj::trainer
