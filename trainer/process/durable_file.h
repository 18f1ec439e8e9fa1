// A file that is on the disk when it says so: written once, hashed on the way, fsynced. And its
// counterpart, the check.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace tj::trainer {

struct FileDigest {
  std::int64_t bytes = 0;
  std::string sha256;  // lower-case hexadecimal
  bool operator==(const FileDigest&) const = default;
};

/// Running SHA-256 (OpenSSL).
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&& other) noexcept;
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  std::string hex() &&;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

class DurableFile {
 public:
  static Result<DurableFile> create(const std::filesystem::path& path);
  Result<void> write(std::span<const std::byte> bytes);
  /// Flushes to the disk and closes. Nothing may be written after it.
  Result<FileDigest> finish();

  DurableFile(DurableFile&& other) noexcept;
  DurableFile& operator=(DurableFile&&) = delete;
  ~DurableFile();

 private:
  DurableFile(std::filesystem::path path, int descriptor);
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::int64_t bytes_ = 0;
  Sha256 hash_;
};

Result<FileDigest> write_durably(const std::filesystem::path& path, std::string_view text);

/// Makes the names in `folder` durable: a rename is on the disk only after this.
Result<void> sync_folder(const std::filesystem::path& folder);

/// Fails with Code::invalid and says how the file differs: missing, cut short, longer, or changed;
/// with Code::timeout once `should_stop` says so. It is asked after each piece of a megabyte.
Result<void> verify_file(const std::filesystem::path& path, const FileDigest& expected,
                         const std::function<bool()>& should_stop = {});

/// The whole text of a small file, at most `bytes_max`.
Result<std::string> read_small_file(const std::filesystem::path& path, std::int64_t bytes_max);

}  // namespace tj::trainer
