// How tokens lie in a file of one of the formats in use. Looks at magic and name, decides, and
// checks what can be checked without reading the tokens.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "contract/result.h"
#include "trainer/process/data_file.h"

namespace tj::trainer {

enum class TokenFormat {
  text,      // bytes are tokens, a zero follows each file
  ours,      // .tok, token_header.h
  llmc,      // llm.c: 256 int32 of header, then uint16 (GPT-2) or uint32 (Llama 3)
  megatron,  // Megatron-LM: NAME.bin beside NAME.idx
  nanogpt,   // nanoGPT: nothing but uint16, in a .bin
};

/// "text", "llm.c .bin", ...: for people.
const char* to_string(TokenFormat format);

struct TokenLayout {
  TokenFormat format = TokenFormat::text;
  std::size_t token_bytes = 1;  // little-endian
  std::int64_t first_byte = 0;
  std::int64_t token_count = 0;
  std::int64_t vocabulary = 0;   // 0: the format doesn't say
  std::string tokenizer;         // empty: the format doesn't say
  std::string tokenizer_sha256;  // the same
  bool operator==(const TokenLayout&) const = default;
};

/// A known magic decides; without one a .bin with an .idx beside it is Megatron's and any other
/// .bin nanoGPT's. Fails with Code::invalid; the message has the offset, what was found and what
/// would be right.
Result<TokenLayout> layout_of(const DataFile& file);

/// The layout of Megatron's `bin_path` with `bin_bytes` bytes, by the content of its index.
Result<TokenLayout> megatron_layout(const std::filesystem::path& index_path,
                                    std::span<const std::uint8_t> index, std::int64_t bin_bytes);

}  // namespace tj::trainer
