// One part's tokens on their way to a .tok: kept in memory as the chunks of the file, then written
// so that the file appears whole or not at all.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/data/token_header.h"
#include "trainer/data/token_manifest.h"
#include "trainer/data/tokenizer.h"

namespace tj::trainer {

class TokenFileBuilder {
 public:
  explicit TokenFileBuilder(const Tokenizer& tokenizer);

  void append(std::span<const std::uint32_t> ids);
  void end_document();

  /// Writes `folder`/`name`: under another name first, flushed, renamed. The caller flushes the
  /// folder.
  Result<TokenFileEntry> write(const std::filesystem::path& folder, const std::string& name) const;

 private:
  const Tokenizer& tokenizer_;
  std::uint32_t token_bytes_;
  std::int64_t document_count_ = 0;
  std::int64_t token_count_ = 0;
  std::vector<std::vector<std::uint8_t>> chunks_;  // all full but the last
};

/// The entry of the finished `folder`/`name` if it is there, whole, and made by `tokenizer`.
Result<TokenFileEntry> finished_token_file(const std::filesystem::path& folder,
                                           const std::string& name, const Tokenizer& tokenizer);

}  // namespace tj::trainer
