// What `trainer prepare conversations` has found out of one file of conversations: a file of JSON
// lines beside it, of which the first says of what, and each other one what a part of them holds.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/data/conversation/conversation_file.h"

namespace tj::trainer {

/// Conversations that are looked at together.
inline constexpr std::int64_t kConversationsOfPart = 64;

/// Of what an index is. Another file, or other places of the pictures, make another one.
struct ConversationIndexKey {
  std::uint64_t digest = 0;  // ConversationFile::digest()
  std::int64_t count = 0;
  std::string data_root;
  std::string tokenizer;    // SHA-256; empty: tokens were not counted
  bool is_decoded = false;  // every picture and video was, to the end
  bool operator==(const ConversationIndexKey&) const = default;
};

struct ConversationPart {
  std::int64_t number = 0;  // conversations [number x kConversationsOfPart, ...)
  std::int64_t turns = 0;
  std::int64_t pictures = 0;
  std::int64_t videos = 0;
  std::int64_t video_frames = 0;
  std::int64_t text_bytes = 0;
  std::int64_t text_tokens = 0;                // where they were counted
  std::int64_t text_tokens_max = 0;            // of one conversation
  std::int64_t pictures_max = 0;               // of one conversation
  std::map<std::string, std::int64_t> sizes;   // "640 x 480" -> pictures
  std::map<std::int64_t, std::string> broken;  // by the conversation's index in the file: why
  bool operator==(const ConversationPart&) const = default;
};

struct ConversationIndex {
  ConversationIndexKey key;
  std::map<std::int64_t, ConversationPart> parts;
  bool is_whole() const;
};

/// train.json -> train.json.index.jsonl, in `folder` unless that is empty.
std::filesystem::path conversation_index_path(const std::filesystem::path& file,
                                              const std::filesystem::path& folder);
std::string index_line(const ConversationIndexKey& key);
std::string index_line(const ConversationPart& part);
/// Lines that are cut off or damaged are left out, and all that follows a second key, which is
/// another's. Fails with Code::not_found where there is no file, with Code::invalid where its first
/// line is none of an index.
Result<ConversationIndex> read_conversation_index(const std::filesystem::path& file);
/// The same of a text.
Result<ConversationIndex> conversation_index_from(std::string_view text);

}  // namespace tj::trainer
