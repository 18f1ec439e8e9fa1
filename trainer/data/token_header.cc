#include "trainer/data/token_header.h"

#include <zlib.h>

#include <algorithm>
#include <cstdio>

namespace tj::trainer {
namespace {

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kWidthAt = 12;
constexpr std::size_t kVocabularyAt = 16;
constexpr std::size_t kTokensAt = 24;
constexpr std::size_t kDocumentsAt = 32;
constexpr std::size_t kChunkAt = 40;
constexpr std::size_t kTableCrcAt = 44;
constexpr std::size_t kNameAt = 48;
constexpr std::size_t kNameBytes = 32;
constexpr std::size_t kHashAt = 80;
constexpr std::size_t kHashBytes = 32;
constexpr std::size_t kHeaderCrcAt = 124;
constexpr std::int64_t kTokensMax = std::int64_t{1} << 48;  // far beyond any disk; sums can't wrap
constexpr std::int64_t kVocabularyMax = std::int64_t{1} << 31;  // ids are int32 in training

std::uint8_t hex_value(char digit) {
  return static_cast<std::uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

Error bad_at(const std::string& path, std::int64_t offset, const std::string& what) {
  return {.code = Code::invalid,
          .message = "at byte " + std::to_string(offset) + ": " + what,
          .subject = path};
}

TokenHeader fields_of(std::span<const std::uint8_t> head) {
  const auto number = [&](std::size_t at, std::size_t count) {
    return load_little(head.data() + at, count);
  };
  TokenHeader header;
  header.token_bytes = static_cast<std::uint32_t>(number(kWidthAt, 4));
  header.vocabulary = static_cast<std::int64_t>(number(kVocabularyAt, 8));
  header.token_count = static_cast<std::int64_t>(number(kTokensAt, 8));
  header.document_count = static_cast<std::int64_t>(number(kDocumentsAt, 8));
  header.table_crc32 = static_cast<std::uint32_t>(number(kTableCrcAt, 4));
  const auto name = head.subspan(kNameAt, kNameBytes);
  header.tokenizer.assign(name.begin(), std::ranges::find(name, 0));
  constexpr char kDigits[] = "0123456789abcdef";
  for (const std::uint8_t byte : head.subspan(kHashAt, kHashBytes)) {
    header.tokenizer_sha256 += kDigits[byte >> 4];
    header.tokenizer_sha256 += kDigits[byte & 15];
  }
  return header;
}

Result<void> check_fields(std::span<const std::uint8_t> head, const TokenHeader& header,
                          const std::string& path) {
  const auto stored = static_cast<std::uint32_t>(load_little(head.data() + kHeaderCrcAt, 4));
  const std::uint32_t found = crc32_of(head.first(kHeaderCrcAt));
  if (stored != found) {
    return bad_at(path, kHeaderCrcAt,
                  "the header is damaged: its CRC-32 is " + hex32(found) + ", the file says " +
                      hex32(stored));
  }
  const auto width = header.token_bytes;
  if (width != 1 && width != 2 && width != 4) {
    return bad_at(path, kWidthAt,
                  "a token has " + std::to_string(width) + " bytes; it must be 1, 2 or 4");
  }
  if (header.vocabulary < 1 || header.vocabulary > kVocabularyMax) {
    return bad_at(path, kVocabularyAt,
                  "the vocabulary is " + std::to_string(header.vocabulary) +
                      "; it must be from 1 to " + std::to_string(kVocabularyMax));
  }
  if (header.token_count < 0 || header.token_count > kTokensMax) {
    return bad_at(path, kTokensAt,
                  "the token count is " + std::to_string(header.token_count) +
                      "; it must be from 0 to " + std::to_string(kTokensMax));
  }
  const auto chunk_bytes = load_little(head.data() + kChunkAt, 4);
  if (chunk_bytes != kTokenChunkBytes) {
    return bad_at(path, kChunkAt,
                  "a checksum covers " + std::to_string(chunk_bytes) + " bytes; it must be " +
                      std::to_string(kTokenChunkBytes));
  }
  return {};
}

}  // namespace

std::int64_t TokenHeader::chunk_count() const {
  constexpr auto kChunk = static_cast<std::int64_t>(kTokenChunkBytes);
  return (payload_bytes() + kChunk - 1) / kChunk;
}

std::int64_t TokenHeader::file_bytes() const { return table_at() + 4 * chunk_count(); }

std::uint32_t token_bytes_for(std::int64_t vocabulary) {
  return vocabulary <= 1 << 8 ? 1 : vocabulary <= 1 << 16 ? 2 : 4;
}

std::array<std::uint8_t, kTokenHeaderBytes> encode(const TokenHeader& header) {
  TJ_CHECK(header.tokenizer.size() <= kNameBytes, "the tokenizer's name is too long");
  TJ_CHECK(header.tokenizer_sha256.size() == 2 * kHashBytes, "the tokenizer has no hash");
  std::array<std::uint8_t, kTokenHeaderBytes> bytes{};
  std::ranges::copy(kTokenMagic, bytes.begin());
  const auto put = [&](std::size_t at, std::int64_t value, std::size_t count) {
    store_little(bytes.data() + at, static_cast<std::uint64_t>(value), count);
  };
  put(kVersionAt, kTokenFileVersion, 4);
  put(kWidthAt, header.token_bytes, 4);
  put(kVocabularyAt, header.vocabulary, 8);
  put(kTokensAt, header.token_count, 8);
  put(kDocumentsAt, header.document_count, 8);
  put(kChunkAt, kTokenChunkBytes, 4);
  put(kTableCrcAt, header.table_crc32, 4);
  std::ranges::copy(header.tokenizer, bytes.begin() + kNameAt);
  for (std::size_t i = 0; i < kHashBytes; ++i) {
    bytes[kHashAt + i] = static_cast<std::uint8_t>(hex_value(header.tokenizer_sha256[2 * i]) << 4 |
                                                   hex_value(header.tokenizer_sha256[2 * i + 1]));
  }
  put(kHeaderCrcAt, crc32_of(std::span(bytes).first(kHeaderCrcAt)), 4);
  return bytes;
}

Result<TokenHeader> decode_token_header(std::span<const std::uint8_t> head, std::int64_t file_bytes,
                                        const std::string& path) {
  if (head.size() < kTokenHeaderBytes) {
    return bad_at(path, file_bytes,
                  "the file ends within its header of " + std::to_string(kTokenHeaderBytes) +
                      " bytes: cut short");
  }
  if (!std::ranges::equal(head.first(kTokenMagic.size()), kTokenMagic))
    return bad_at(path, 0, "the magic is not " + std::string(kTokenMagic));
  const auto version = load_little(head.data() + kVersionAt, 4);
  if (version != kTokenFileVersion) {
    return bad_at(path, kVersionAt,
                  "the version is " + std::to_string(version) + "; this trainer reads version " +
                      std::to_string(kTokenFileVersion));
  }
  TokenHeader header = fields_of(head);
  if (const auto checked = check_fields(head, header, path); !checked) return checked.error();
  if (file_bytes != header.file_bytes()) {
    return bad_at(
        path, file_bytes,
        std::string(file_bytes < header.file_bytes() ? "the file ends here: cut short"
                                                     : "the file goes on to here: too long") +
            ", its header asks for " + std::to_string(header.file_bytes()) + " bytes");
  }
  return header;
}

Result<void> check_token_table(const TokenHeader& header, std::span<const std::uint8_t> table,
                               const std::string& path) {
  const std::uint32_t found = crc32_of(table);
  if (found == header.table_crc32) return {};
  return bad_at(path, header.table_at(),
                "the table of checksums is damaged: its CRC-32 is " + hex32(found) +
                    ", the header says " + hex32(header.table_crc32));
}

Result<void> check_token_chunk(const TokenChunk& chunk, const std::string& path) {
  const std::uint32_t found = crc32_of(chunk.bytes);
  if (chunk.crc32 == found) return {};
  return bad_at(path, chunk.first_byte,
                "the " + std::to_string(chunk.bytes.size()) +
                    " bytes from here on are damaged: their CRC-32 is " + hex32(found) +
                    ", the file says " + hex32(chunk.crc32));
}

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), bytes.size()));
}

std::uint64_t load_little(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  return value;
}

void store_little(std::uint8_t* bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

std::string hex32(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

}  // namespace tj::trainer
