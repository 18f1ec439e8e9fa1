#include "trainer/data/conversation/conversation_index.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "trainer/data/lerobot/json_place.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
using nlohmann::json;

constexpr std::int64_t kIndexBytesMax = std::int64_t{1} << 30;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr const char* kFormat = "trainer conversations 1";

std::string dumped(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

ConversationIndexKey key_from(const JsonPlace& line) {
  if (line.at("format").text() != kFormat) throw line.at("format").wrong("must be another");
  return {.digest = std::stoull(line.at("digest").text(), nullptr, 16),
          .count = line.at("count").integer(0, kMost),
          .data_root = line.at("data_root").text(),
          .tokenizer = line.at("tokenizer").text(),
          .is_decoded = line.at("decoded").integer(0, 1) == 1};
}

ConversationPart part_from(const JsonPlace& line, std::int64_t count) {
  const auto number = [&line](const char* name) { return line.at(name).integer(0, kMost); };
  const auto part_count = (count + kConversationsOfPart - 1) / kConversationsOfPart;
  ConversationPart part{.number = line.at("part").integer(0, part_count - 1),
                        .turns = number("turns"),
                        .pictures = number("pictures"),
                        .videos = number("videos"),
                        .video_frames = number("video_frames"),
                        .text_bytes = number("text_bytes"),
                        .text_tokens = number("text_tokens"),
                        .text_tokens_max = number("text_tokens_max"),
                        .pictures_max = number("pictures_max"),
                        .sizes = {},
                        .broken = {}};
  line.at("sizes").each([&part](const JsonPlace& row) {
    if (row.value().size() != 2) throw row.wrong("must be a size and a number");
    part.sizes[JsonPlace(row.value()[0], "size").text()] =
        JsonPlace(row.value()[1], "pictures").integer(0, kMost);
  });
  const auto first = part.number * kConversationsOfPart;
  const auto last = std::min(count, first + kConversationsOfPart) - 1;
  line.at("broken").each([&](const JsonPlace& row) {
    if (row.value().size() != 2) throw row.wrong("must be a number and a text");
    part.broken[JsonPlace(row.value()[0], "number").integer(first, last)] =
        JsonPlace(row.value()[1], "why").text();
  });
  return part;
}

}  // namespace

bool ConversationIndex::is_whole() const {
  const auto wanted = (key.count + kConversationsOfPart - 1) / kConversationsOfPart;
  return static_cast<std::int64_t>(parts.size()) == wanted;
}

std::filesystem::path conversation_index_path(const std::filesystem::path& file,
                                              const std::filesystem::path& folder) {
  const auto name = file.filename().string() + ".index.jsonl";
  return (folder.empty() ? file.parent_path() : folder) / name;
}

std::string index_line(const ConversationIndexKey& key) {
  char digest[20];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(key.digest));
  return dumped({{"format", kFormat},
                 {"digest", digest},
                 {"count", key.count},
                 {"data_root", key.data_root},
                 {"tokenizer", key.tokenizer},
                 {"decoded", key.is_decoded ? 1 : 0}});
}

std::string index_line(const ConversationPart& part) {
  auto sizes = json::array(), broken = json::array();
  for (const auto& [size, count] : part.sizes) sizes.push_back(json::array({size, count}));
  for (const auto& [number, why] : part.broken) broken.push_back(json::array({number, why}));
  return dumped({{"part", part.number},
                 {"turns", part.turns},
                 {"pictures", part.pictures},
                 {"videos", part.videos},
                 {"video_frames", part.video_frames},
                 {"text_bytes", part.text_bytes},
                 {"text_tokens", part.text_tokens},
                 {"text_tokens_max", part.text_tokens_max},
                 {"pictures_max", part.pictures_max},
                 {"sizes", sizes},
                 {"broken", broken}});
}

Result<ConversationIndex> conversation_index_from(std::string_view text) {
  ConversationIndex index;
  bool has_key = false;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = text.find('\n', from);
    if (end == text.npos) break;  // cut off
    const auto line = json::parse(text.substr(from, end - from), nullptr, false);
    from = end + 1;
    try {
      const JsonPlace place(line, "");
      if (!has_key) {
        index.key = key_from(place);
        has_key = true;
        continue;
      }
      if (place.has("format")) break;
      auto part = part_from(place, index.key.count);
      index.parts.insert_or_assign(part.number, std::move(part));
    } catch (const std::exception& failure) {
      if (!has_key)
        return Error{.code = Code::invalid,
                     .message = std::string("is no index of conversations: ") + failure.what(),
                     .subject = {}};
    }
  }
  if (has_key) return index;
  return Error{
      .code = Code::invalid, .message = "is no index of conversations: is empty", .subject = {}};
}

Result<ConversationIndex> read_conversation_index(const std::filesystem::path& file) {
  const auto text = read_small_file(file, kIndexBytesMax);
  if (!text) return text.error();
  auto index = conversation_index_from(*text);
  if (index) return index;
  auto error = index.error();
  error.subject = file.string();
  return error;
}

}  // namespace tj::trainer
