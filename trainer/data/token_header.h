// Our own token file (.tok): a header of 128 bytes, the tokens, and a checksum for each chunk of
// them, so that damage is found with its offset. docs/data.md describes it byte by byte.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr std::string_view kTokenMagic = "TJTOKENS";
inline constexpr std::uint32_t kTokenFileVersion = 1;
inline constexpr std::size_t kTokenHeaderBytes = 128;
/// Small, because the first read of any token in a chunk checks all of it.
inline constexpr std::size_t kTokenChunkBytes = 64 << 10;

struct TokenHeader {
  std::uint32_t token_bytes = 0;  // 1, 2 or 4; little-endian
  std::int64_t vocabulary = 0;    // every token is less
  std::int64_t token_count = 0;
  std::int64_t document_count = 0;  // documents that end in this file
  std::uint32_t table_crc32 = 0;    // of the checksums that follow the tokens
  std::string tokenizer;            // at most 32 bytes
  std::string tokenizer_sha256;     // 64 hexadecimal digits
  bool operator==(const TokenHeader&) const = default;

  std::int64_t payload_bytes() const { return token_count * token_bytes; }
  std::int64_t table_at() const { return std::int64_t{kTokenHeaderBytes} + payload_bytes(); }
  std::int64_t chunk_count() const;
  std::int64_t file_bytes() const;
};

/// The least token width that holds every id below `vocabulary`.
std::uint32_t token_bytes_for(std::int64_t vocabulary);

std::array<std::uint8_t, kTokenHeaderBytes> encode(const TokenHeader& header);

/// Checks the header, by the first bytes of a file (kTokenHeaderBytes, or all there are), and the
/// file's size. Fails with Code::invalid; the message has the offset, what was found and what would
/// be right.
Result<TokenHeader> decode_token_header(std::span<const std::uint8_t> head, std::int64_t file_bytes,
                                        const std::string& path);

/// Checks the table of checksums, which begins at header.table_at().
Result<void> check_token_table(const TokenHeader& header, std::span<const std::uint8_t> table,
                               const std::string& path);

/// Some of the tokens, and what the table says of them.
struct TokenChunk {
  std::int64_t first_byte = 0;  // in the file
  std::span<const std::uint8_t> bytes;
  std::uint32_t crc32 = 0;
};
/// Fails with Code::invalid and the offset of the chunk.
Result<void> check_token_chunk(const TokenChunk& chunk, const std::string& path);

/// CRC-32 as in zlib, gzip and PNG.
std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

/// Little-endian numbers of 1 to 8 bytes.
std::uint64_t load_little(const std::uint8_t* bytes, std::size_t count);
void store_little(std::uint8_t* bytes, std::uint64_t value, std::size_t count);

/// "0x1f2e3d4c"
std::string hex32(std::uint32_t value);

}  // namespace tj::trainer
