// Reads pieces of a file of data, wherever they lie. Not mapped: memory that is stated must be
// counted, and a file that shrinks or a disk that fails must be an error, not a signal.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "contract/result.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {

/// "PATH: can't be read: CAUSE" with the code that fits `error_number`.
Error read_error(const std::filesystem::path& path, int error_number);

class DataFile {
 public:
  /// Fails with not_found, forbidden or invalid, also for a folder, a pipe or a device. Where the
  /// process may have no more files open, its limit is raised as far as it may itself.
  static Result<DataFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const { return bytes_; }  // when it was opened

  /// Fills `bytes` from `offset` on; the range must lie inside bytes(). Fails with Code::internal
  /// when the file has been cut since, or its disk fails; the error names the byte. Any thread may
  /// read.
  Result<void> read(std::int64_t offset, std::span<std::byte> bytes) const;
  Result<void> read(std::int64_t offset, std::span<std::uint8_t> bytes) const {
    return read(offset, std::as_writable_bytes(bytes));
  }
  /// The bytes from `offset` on, at most `count`, less only at the end of the file.
  Result<std::string> read(std::int64_t offset, std::int64_t count) const;

 private:
  DataFile(std::filesystem::path path, UniqueFd descriptor, std::int64_t bytes)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), bytes_(bytes) {}
  std::filesystem::path path_;
  UniqueFd descriptor_;
  std::int64_t bytes_ = 0;
};

}  // namespace tj::trainer
