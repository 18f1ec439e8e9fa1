#include "trainer/data/conversation/conversation_file.h"

#include <algorithm>
#include <optional>

#include "trainer/data/conversation/conversation.h"
#include "trainer/data/file_walk.h"
#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kPieceBytes = 4 << 20;
constexpr std::string_view kIndexEnding = ".index.jsonl";  // prepare_conversations.h's own

bool is_white(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }

/// Finds the objects of a file, byte by byte: how deep it is in braces, and whether in text.
class ObjectScanner {
 public:
  /// Absent: go on. Else what is wrong at the byte `at`.
  std::optional<std::string> take(char byte, std::int64_t at) {
    if (depth_ > 0) return inside(byte, at);
    if (is_white(byte)) return std::nullopt;
    if (byte == '{') return begin(at);
    if (byte == '[' && state_ == State::start) {
      is_array_ = true;
      state_ = State::first;
      return std::nullopt;
    }
    if (byte == ']' && is_array_ && (state_ == State::behind || state_ == State::first)) {
      state_ = State::end;
      return std::nullopt;
    }
    if (byte == ',' && is_array_ && state_ == State::behind) {
      state_ = State::next;
      return std::nullopt;
    }
    return state_ == State::start
               ? "is neither a JSON array of conversations nor JSON lines of them"
               : std::string("has no conversation, an object in braces, where one comes");
  }

  /// What is wrong with where the file ends.
  std::string flaw_of_end() const {
    if (depth_ > 0)
      return "ends inside of the conversation that begins at byte " + std::to_string(begun_);
    if (is_array_ && state_ != State::end)
      return "ends before the ] of its array: is it cut short?";
    return ranges_.empty() ? "holds no conversation" : "";
  }
  std::vector<ConversationRange> take_ranges() { return std::move(ranges_); }

 private:
  enum class State { start, first, next, behind, end };

  std::optional<std::string> begin(std::int64_t at) {
    const bool may = is_array_ ? state_ == State::first || state_ == State::next : true;
    if (!may) return "has a conversation where a comma, or nothing, comes";
    begun_ = at;
    depth_ = 1;
    return std::nullopt;
  }
  std::optional<std::string> inside(char byte, std::int64_t at) {
    if (at - begun_ >= kConversationBytesMax)
      return "has a conversation of more than " + std::to_string(kConversationBytesMax) + " bytes";
    if (is_in_text_) {
      if (is_escaped_)
        is_escaped_ = false;
      else if (byte == '\\')
        is_escaped_ = true;
      else if (byte == '"')
        is_in_text_ = false;
    } else if (byte == '"') {
      is_in_text_ = true;
    } else if (byte == '{' || byte == '[') {
      ++depth_;
    } else if (byte == '}' || byte == ']') {
      if (--depth_ > 0) return std::nullopt;
      ranges_.push_back({.offset = begun_, .bytes = at + 1 - begun_});
      state_ = State::behind;
    }
    return std::nullopt;
  }

  State state_ = State::start;
  bool is_array_ = false;
  bool is_in_text_ = false;
  bool is_escaped_ = false;
  std::int64_t depth_ = 0;  // of brackets; 0: between conversations
  std::int64_t begun_ = 0;
  std::vector<ConversationRange> ranges_;
};

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

bool is_of_conversations(const fs::path& file) {
  const auto ending = file.extension();
  return (ending == ".json" || ending == ".jsonl") && !file.string().ends_with(kIndexEnding);
}

}  // namespace

Result<ConversationFile> ConversationFile::open(const fs::path& path) {
  auto file = DataFile::open(path);
  if (!file) return file.error();
  ObjectScanner scanner;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  for (std::int64_t at = 0; at < file->bytes();) {
    const auto piece = file->read(at, std::min(kPieceBytes, file->bytes() - at));
    if (!piece) return piece.error();
    std::size_t first = at == 0 && piece->starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    for (; first < piece->size(); ++first) {
      const auto place = at + static_cast<std::int64_t>(first);
      if (const auto flaw = scanner.take((*piece)[first], place))
        return wrong(path.string(), *flaw + " (at byte " + std::to_string(place) + ")");
    }
    if (piece->empty()) return wrong(path.string(), "has become shorter while it was read");
    at += static_cast<std::int64_t>(piece->size());
  }
  if (const auto flaw = scanner.flaw_of_end(); !flaw.empty()) return wrong(path.string(), flaw);
  return ConversationFile(std::move(*file), scanner.take_ranges());
}

std::uint64_t ConversationFile::digest() const {
  auto digest = static_cast<std::uint64_t>(bytes());
  for (const auto& range : ranges_) {
    digest = mixed(digest ^ static_cast<std::uint64_t>(range.offset));
    digest = mixed(digest ^ static_cast<std::uint64_t>(range.bytes));
  }
  return digest;
}

std::string ConversationFile::name(std::int64_t index) const {
  const auto& range = ranges_[static_cast<std::size_t>(index)];
  return path().string() + ": conversation " + std::to_string(index + 1) + ", at byte " +
         std::to_string(range.offset);
}

Result<std::string> ConversationFile::text(std::int64_t index) const {
  const auto& range = ranges_[static_cast<std::size_t>(index)];
  return file_.read(range.offset, range.bytes);
}

Result<std::vector<fs::path>> find_conversation_files(const std::vector<std::string>& paths,
                                                      const std::string& flag) {
  std::vector<fs::path> found;
  for (const auto& path : paths) {
    std::error_code unreadable;
    const auto status = fs::status(path, unreadable);
    if (!fs::exists(status))
      return Error{.code = Code::not_found,
                   .message =
                       "is not there; it must be a file of conversations (.json, .jsonl) or "
                       "a folder of them, on every node: is the volume mounted?",
                   .subject = flag + " " + path};
    if (!fs::is_directory(status)) {
      found.emplace_back(path);
      continue;
    }
    auto files = files_below(path);
    if (!files) return files.error();
    std::erase_if(*files, [](const fs::path& file) { return !is_of_conversations(file); });
    if (files->empty())
      return wrong(flag + " " + path, "holds no file of conversations (.json, .jsonl)");
    found.insert(found.end(), files->begin(), files->end());
  }
  return found;
}

}  // namespace tj::trainer
