// A folder of text as one stream of byte tokens: every regular file below it, sorted by path,
// memory-mapped, each followed by kDocumentEnd. Hidden names are skipped (a ConfigMap volume keeps
// its copies in one).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// The token between documents: byte 0, which text never holds.
inline constexpr std::uint8_t kDocumentEnd = 0;
/// Each file is one memory map, and Linux allows a process 65,530 of them by default.
inline constexpr std::size_t kFilesMax = 60'000;

class TextFolder {
 public:
  /// Empty files are left out. Fails with not_found, forbidden or invalid; the error names the
  /// folder or file.
  static Result<TextFolder> open(const std::filesystem::path& folder);

  std::int64_t token_count() const { return token_count_; }
  std::size_t file_count() const { return files_.size(); }
  /// Copies the tokens from `offset` on; the range must lie inside the stream.
  void read(std::int64_t offset, std::span<std::uint8_t> tokens) const;

  TextFolder(TextFolder&& other) noexcept = default;
  TextFolder& operator=(TextFolder&&) = delete;
  ~TextFolder();

 private:
  struct MappedFile {
    std::span<const std::uint8_t> bytes;
    std::int64_t first_token = 0;
  };
  TextFolder() = default;
  Result<void> add(const std::filesystem::path& file);

  std::vector<MappedFile> files_;
  std::int64_t token_count_ = 0;
};

}  // namespace tj::trainer
