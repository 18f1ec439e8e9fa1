// The way back from tokens to text: which bytes each id stands for, by the same files that
// bpe_files.h reads. Knows nothing of merges. Torch-free.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// As `trainer prepare` and transformers name it, in a prepared folder and in a checkpoint.
inline constexpr const char* kTokenizerFile = "tokenizer.json";
inline constexpr std::int64_t kTokenizerBytesMax = 64 << 20;  // GPT-2's has 1.4 MB

/// The tokenizer.json in the folder `path`, or in that of the file; absent: there is none.
std::optional<std::filesystem::path> tokenizer_file_beside(const std::filesystem::path& path);

class TokenBytes {
 public:
  /// Each byte is a token of its own value.
  static TokenBytes of_bytes();
  /// `path` as of read_bpe_vocabulary(). A token that its file spells otherwise than byte-level BPE
  /// does has no bytes. Fails with not_found or invalid.
  static Result<TokenBytes> read(const std::filesystem::path& path);

  /// The largest id, and one.
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  /// Absent: no text has this token.
  std::optional<std::string_view> find(std::int64_t id) const;

 private:
  void set(std::int64_t id, std::optional<std::string> bytes);

  std::vector<std::optional<std::string>> bytes_;  // by id
};

}  // namespace tj::trainer
