// A whole file as read-only memory. Pages come in as they are touched; the kernel may drop them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "contract/result.h"

namespace tj::trainer {

/// "PATH: can't be read: CAUSE" with the code that fits `error_number`.
Error read_error(const std::filesystem::path& path, int error_number);

class MappedFile {
 public:
  /// An empty file has empty bytes. Fails with not_found, forbidden or invalid.
  static Result<MappedFile> open(const std::filesystem::path& path);

  std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// Brings in what holds these bytes, which must lie inside the file, and returns the first one
  /// that can't be read: the file was cut since it was opened, or its disk fails. To touch it
  /// otherwise ends the process (SIGBUS).
  std::optional<std::size_t> first_unreadable(std::size_t begin, std::size_t count) const;

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

 private:
  explicit MappedFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::span<const std::uint8_t> bytes_;
};

}  // namespace tj::trainer
