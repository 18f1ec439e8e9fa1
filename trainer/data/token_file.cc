#include "trainer/data/token_file.h"

#include <algorithm>
#include <array>

namespace tj::trainer {

Result<std::vector<std::uint8_t>> read_head(const DataFile& file, std::int64_t count) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(std::min(count, file.bytes())));
  if (const auto read = file.read(0, bytes); !read) return read.error();
  return bytes;
}

Result<TokenHeader> read_token_header(const DataFile& file) {
  const std::string path = file.path().string();
  const auto head = read_head(file, kTokenHeaderBytes);
  if (!head) return head.error();
  auto header = decode_token_header(*head, file.bytes(), path);
  if (!header) return header;
  std::vector<std::uint8_t> table(static_cast<std::size_t>(4 * header->chunk_count()));
  if (const auto read = file.read(header->table_at(), table); !read) return read.error();
  if (const auto good = check_token_table(*header, table, path); !good) return good.error();
  return header;
}

Result<void> check_token_chunk(const DataFile& file, std::int64_t payload_bytes,
                               std::int64_t chunk) {
  constexpr auto kHeader = static_cast<std::int64_t>(kTokenHeaderBytes);
  constexpr auto kChunk = static_cast<std::int64_t>(kTokenChunkBytes);
  std::array<std::uint8_t, kTokenChunkBytes> memory;
  const auto bytes = std::span(memory).first(
      static_cast<std::size_t>(std::min(kChunk, payload_bytes - chunk * kChunk)));
  std::array<std::uint8_t, 4> crc32{};
  const std::int64_t first_byte = kHeader + chunk * kChunk;
  if (const auto read = file.read(first_byte, bytes); !read) return read;
  if (const auto read = file.read(kHeader + payload_bytes + 4 * chunk, crc32); !read) return read;
  return check_token_chunk({.first_byte = first_byte,
                            .bytes = bytes,
                            .crc32 = static_cast<std::uint32_t>(load_little(crc32.data(), 4))},
                           file.path().string());
}

}  // namespace tj::trainer
