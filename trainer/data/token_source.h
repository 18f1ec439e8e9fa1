// Training data as one stream of tokens, whatever files it lies in: a folder of text, one of
// prepared tokens, or token files of the formats in token_layout.h. What is read is checked on the
// way.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/token_layout.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

/// The byte token between documents, which text never holds.
inline constexpr std::uint8_t kDocumentEnd = 0;
/// Of a prepared folder: what is trained on, or what `trainer prepare --val` has held out.
enum class TokenPart { train, val };

/// Tokens in the val part of a prepared folder; 0 of all else.
std::int64_t held_out_tokens(const std::filesystem::path& path);

/// All are open at once.
inline constexpr std::size_t kFilesMax = 60'000;

class TokenSource {
 public:
  /// Opens each of `paths` and joins them in this order. A folder is, by what lies in it: prepared
  /// tokens (a manifest), token files (any .tok or .bin in it; names with the word val, valid,
  /// validation or test are left out), else text, read recursively. Files that disagree in format,
  /// vocabulary or tokenizer are refused. Fails with not_found, forbidden or invalid; the error
  /// names the file, and in it the offset, or `flag`, with which the user has named the path. With
  /// TokenPart::val a prepared folder that has a val part gives that one instead.
  static Result<TokenSource> open(std::span<const std::string> paths, std::string flag,
                                  TokenPart part = TokenPart::train);

  std::int64_t token_count() const { return token_count_; }
  std::size_t file_count() const { return files_.size(); }
  TokenFormat format() const { return layout_.format; }
  std::int64_t vocabulary() const { return layout_.vocabulary; }  // 0: the files don't say
  const std::string& tokenizer() const { return layout_.tokenizer; }

  /// From here on an id that is not below `vocabulary` is damage.
  void require_ids_below(std::int64_t vocabulary) { ids_end_ = vocabulary; }

  /// Copies the tokens from `offset` on; the range must lie inside the stream. Fails with
  /// Code::invalid when a checksum is wrong or an id too large, with Code::internal when the file
  /// can't be read any more. Any thread may read.
  Result<void> read(std::int64_t offset, std::span<std::int32_t> tokens) const;

  TokenSource(TokenSource&& other) noexcept = default;
  TokenSource& operator=(TokenSource&&) = delete;

 private:
  struct TokenFile {  // or one of text
    DataFile data;
    TokenLayout layout;
    std::int64_t first_token = 0;
    std::int64_t tokens = 0;  // with the document's end that text has
    std::unique_ptr<std::atomic<bool>[]> chunk_is_good = nullptr;  // ours only
  };
  TokenSource(std::string flag, TokenPart part) : flag_(std::move(flag)), part_(part) {}
  Error error(const std::filesystem::path& path, std::string message) const;
  Result<void> add_path(const std::filesystem::path& path);
  Result<void> add_folder(const std::filesystem::path& folder);
  Result<void> add_prepared(const std::filesystem::path& folder, const std::string& manifest);
  Result<void> add_text(const std::filesystem::path& folder);
  Result<void> add_tokens(const std::filesystem::path& path);
  Result<void> add(DataFile file, const TokenLayout& layout);
  static Result<void> check_chunks(const TokenFile& token_file, std::int64_t position,
                                   std::int64_t count);
  Result<void> read_from(const TokenFile& token_file, std::int64_t position,
                         std::span<std::int32_t> tokens) const;

  std::string flag_;
  TokenPart part_;
  std::vector<TokenFile> files_;
  TokenLayout layout_;  // of the first file; what all files share is read from it
  std::int64_t token_count_ = 0;
  std::int64_t ids_end_ = std::int64_t{1} << 31;
};

}  // namespace tj::trainer
