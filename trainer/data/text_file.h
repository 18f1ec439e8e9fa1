// Reads pieces of an input file, wherever they lie. Not mapped: memory that is stated must be
// counted, and a file that shrinks must be an error, not a signal.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {

class TextFile {
 public:
  static Result<TextFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }  // when it was opened

  /// The bytes from `offset` on, at most `count`, less only at the end of the file.
  Result<std::string> read(std::int64_t offset, std::int64_t count) const;

 private:
  TextFile(std::filesystem::path path, UniqueFd descriptor, std::int64_t bytes)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), bytes_(bytes) {}
  std::filesystem::path path_;
  UniqueFd descriptor_;
  std::int64_t bytes_ = 0;
};

}  // namespace tj::trainer
