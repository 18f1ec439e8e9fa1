#include "trainer/data/token_header.h"

#include <gtest/gtest.h>

#include "tests/trainer/data/token_bytes.h"

namespace tj::trainer {
namespace {

std::span<const std::uint8_t> view(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Result<TokenHeader> header_of(const std::string& file) {
  const auto head = view(file).first(std::min(file.size(), kTokenHeaderBytes));
  auto header = decode_token_header(head, static_cast<std::int64_t>(file.size()), "a.tok");
  if (!header) return header;
  const auto table = view(file).subspan(static_cast<std::size_t>(header->table_at()));
  if (const auto good = check_token_table(*header, table, "a.tok"); !good) return good.error();
  return header;
}

std::string error_of(const std::string& file) {
  const auto header = header_of(file);
  return header ? "" : describe(header.error());
}

/// Of a file with a good header.
Result<void> check_chunk(const std::string& file, std::size_t chunk) {
  const auto table_at = static_cast<std::size_t>(header_of(file)->table_at());
  const std::size_t begin = kTokenHeaderBytes + chunk * kTokenChunkBytes;
  const auto stored = load_little(view(file).data() + table_at + 4 * chunk, 4);
  return check_token_chunk(
      {.first_byte = static_cast<std::int64_t>(begin),
       .bytes = view(file).subspan(begin, std::min(kTokenChunkBytes, table_at - begin)),
       .crc32 = static_cast<std::uint32_t>(stored)},
      "a.tok");
}

/// A header with one changed field and a right checksum, so that the field itself is judged.
std::string with_field(std::string file, std::size_t at, std::uint64_t value, std::size_t count) {
  file.replace(at, count, little(value, count));
  return file.replace(124, 4, little(crc32_of(view(file).first(124)), 4));
}

TEST(TokenHeader, comes_back_as_it_was_written) {
  const std::string file = our_file({1, 2, 50256});
  const auto header = header_of(file);
  ASSERT_TRUE(header) << describe(header.error());
  EXPECT_EQ(header->token_bytes, 2U);
  EXPECT_EQ(header->vocabulary, 50257);
  EXPECT_EQ(header->token_count, 3);
  EXPECT_EQ(header->tokenizer, "gpt2-bpe");
  EXPECT_EQ(header->tokenizer_sha256, std::string(64, 'a'));
  const auto again = encode(*header);
  EXPECT_EQ(std::string(again.begin(), again.end()), file.substr(0, kTokenHeaderBytes));
}

TEST(TokenHeader, crc32_is_that_of_zlib) {
  EXPECT_EQ(crc32_of(view("123456789")), 0xcbf43926U);  // the check value of CRC-32/ISO-HDLC
}

TEST(TokenHeader, every_wrong_field_is_named_with_its_offset) {
  const std::string good = our_file({1, 2, 3});
  struct Row {
    std::string file;
    std::string error;
  };
  const Row rows[] = {
      {good, ""},
      {good.substr(0, 100),
       "a.tok: at byte 100: the file ends within its header of 128 bytes: cut short"},
      {"NOTATOKN" + good.substr(8), "a.tok: at byte 0: the magic is not TJTOKENS"},
      {with_field(good, 8, 2, 4),
       "a.tok: at byte 8: the version is 2; this trainer reads version 1"},
      {with_field(good, 12, 3, 4), "a.tok: at byte 12: a token has 3 bytes; it must be 1, 2 or 4"},
      {with_field(good, 16, 0, 8),
       "a.tok: at byte 16: the vocabulary is 0; it must be from 1 to 2147483648"},
      {with_field(good, 24, ~0ULL, 8),
       "a.tok: at byte 24: the token count is -1; it must be from 0 to 281474976710656"},
      {with_field(good, 24, 4, 8),
       "a.tok: at byte 138: the file ends here: cut short, its header asks for 140 bytes"},
      {with_field(good, 40, 512, 4),
       "a.tok: at byte 40: a checksum covers 512 bytes; it must be 65536"},
      {good.substr(0, good.size() - 1),
       "a.tok: at byte 137: the file ends here: cut short, its header asks for 138 bytes"},
      {good + "x",
       "a.tok: at byte 139: the file goes on to here: too long, its header asks for 138 bytes"},
  };
  for (const auto& row : rows) EXPECT_EQ(error_of(row.file), row.error);
}

TEST(TokenHeader, any_flipped_bit_is_found) {
  const std::string good = our_file({1, 2, 3, 500});
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    const bool in_header_or_table = !error_of(damaged).empty();
    EXPECT_TRUE(in_header_or_table || !check_chunk(damaged, 0)) << bit;
  }
}

TEST(TokenHeader, damage_in_the_tokens_is_found_in_its_chunk) {
  std::string file = our_file(std::vector<std::uint64_t>(3 * kTokenChunkBytes / 2, 7));
  file[kTokenHeaderBytes + kTokenChunkBytes + 5] ^= 1;
  EXPECT_EQ(error_of(file), "");
  EXPECT_TRUE(check_chunk(file, 0));
  EXPECT_TRUE(check_chunk(file, 2));
  const auto checked = check_chunk(file, 1);
  ASSERT_FALSE(checked);
  EXPECT_EQ(describe(checked.error()).substr(0, 64),
            "a.tok: at byte 65664: the 65536 bytes from here on are damaged: ");
}

}  // namespace
}  // namespace tj::trainer
