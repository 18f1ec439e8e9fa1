// All conversations that a user names, by number, and where what they show lies on the disk.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "contract/result.h"
#include "trainer/data/conversation/conversation.h"
#include "trainer/data/conversation/conversation_file.h"

namespace tj::trainer {

struct ConversationSetOptions {
  std::vector<std::string> paths;
  std::string flag = "--data";
  std::string data_root = {};  // relative paths begin there; empty: at the folder of their file
};

/// Where a file lies that a conversation shows; relative paths begin in `folder`. Fails with
/// Code::not_found where it is not there, without a subject.
Result<std::filesystem::path> shown_path(const ShownFile& file,
                                         const std::filesystem::path& folder);

class ConversationSet {
 public:
  /// Fails with not_found or invalid, and the flag or the file.
  static Result<ConversationSet> open(const ConversationSetOptions& options);

  std::int64_t count() const { return count_; }
  const std::vector<ConversationFile>& files() const { return files_; }
  /// "FILE: conversation 12, at byte 3456"
  std::string name(std::int64_t number) const;
  /// On any thread. Fails with name() as the subject.
  Result<Conversation> read(std::int64_t number) const;
  /// Of what conversation `number` shows. Fails with Code::not_found where it is not there, and
  /// says where paths begin.
  Result<std::filesystem::path> path_of(std::int64_t number, const ShownFile& file) const;
  /// Of the files' sizes and of where conversations lie.
  std::uint64_t digest() const;

 private:
  std::pair<std::size_t, std::int64_t> place_of(std::int64_t number) const;  // file, and in it

  ConversationSetOptions options_;
  std::vector<ConversationFile> files_;
  std::vector<std::int64_t> ends_;  // of each file's, and those of the files before it
  std::int64_t count_ = 0;
};

}  // namespace tj::trainer
