// Token files of each format as bytes, written by hand: the tests' own view of the formats.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/token_header.h"

namespace tj::trainer {

inline std::string little(std::uint64_t value, std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

inline std::string tokens_as(const std::vector<std::uint64_t>& tokens, std::size_t width) {
  std::string bytes;
  for (const auto token : tokens) bytes += little(token, width);
  return bytes;
}

inline std::string llmc_file(const std::vector<std::uint64_t>& tokens,
                             std::uint64_t magic = 20240520, std::uint64_t version = 1,
                             std::size_t width = 2) {
  std::string header = little(magic, 4) + little(version, 4) + little(tokens.size(), 4);
  header.resize(1024);
  return header + tokens_as(tokens, width);
}

inline std::string megatron_index(const std::vector<std::uint64_t>& lengths, std::uint8_t type,
                                  std::size_t width) {
  std::string index("MMIDIDX\0\0", 9);
  index += little(1, 8) + little(type, 1) + little(lengths.size(), 8) + little(1, 8);
  index += tokens_as(lengths, 4);
  std::uint64_t pointer = 0;
  for (const auto length : lengths) {
    index += little(pointer, 8);
    pointer += length * width;
  }
  return index + little(0, 8);
}

/// A .tok by the description in docs/data.md.
inline std::string our_file(const std::vector<std::uint64_t>& tokens, std::uint32_t width = 2,
                            std::int64_t vocabulary = 50257) {
  const std::string payload = tokens_as(tokens, width);
  const auto crc32 = [](const std::string& bytes) {
    return crc32_of({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  };
  std::string table;
  for (std::size_t at = 0; at < payload.size(); at += kTokenChunkBytes)
    table += little(crc32(payload.substr(at, kTokenChunkBytes)), 4);
  const auto header = encode(TokenHeader{.token_bytes = width,
                                         .vocabulary = vocabulary,
                                         .token_count = static_cast<std::int64_t>(tokens.size()),
                                         .document_count = 1,
                                         .table_crc32 = crc32(table),
                                         .tokenizer = "gpt2-bpe",
                                         .tokenizer_sha256 = std::string(64, 'a')});
  return std::string(header.begin(), header.end()) + payload + table;
}

}  // namespace tj::trainer
