// A file of conversations, JSON (one array) or JSON lines, of any size: where each of them lies in
// it. Nothing but this is held in memory, 16 bytes for each.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

struct ConversationRange {
  std::int64_t offset = 0;  // bytes
  std::int64_t bytes = 0;
  bool operator==(const ConversationRange&) const = default;
};

class ConversationFile {
 public:
  /// Reads the file once. Fails with not_found, forbidden or invalid: what is neither an array of
  /// objects nor lines of them, with the byte.
  static Result<ConversationFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::int64_t bytes() const { return file_.bytes(); }
  std::int64_t count() const { return static_cast<std::int64_t>(ranges_.size()); }
  /// Of the places alone, not of what stands there.
  std::uint64_t digest() const;
  /// "FILE: conversation 12, at byte 3456"; the first is conversation 1.
  std::string name(std::int64_t index) const;
  /// On any thread. Fails as DataFile::read() does.
  Result<std::string> text(std::int64_t index) const;

 private:
  ConversationFile(DataFile file, std::vector<ConversationRange> ranges)
      : file_(std::move(file)), ranges_(std::move(ranges)) {}
  DataFile file_;
  std::vector<ConversationRange> ranges_;
};

/// .json and .jsonl files below `paths`, sorted within each; a file that is named is one whatever
/// its name ends with. Fails with Code::invalid or not_found, in the words of `flag`.
Result<std::vector<std::filesystem::path>> find_conversation_files(
    const std::vector<std::string>& paths, const std::string& flag);

}  // namespace tj::trainer
