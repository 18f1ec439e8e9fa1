#include "trainer/data/token_layout.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "tests/trainer/data/token_bytes.h"

namespace tj::trainer {
namespace {

std::span<const std::uint8_t> view(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// "FORMAT WIDTH first COUNT VOCABULARY", or the error, of a file in `folder`.
std::string found(const TemporaryFolder& folder, const std::string& name,
                  const std::string& bytes) {
  const auto file = DataFile::open(folder.write(name, bytes));
  EXPECT_TRUE(file) << describe(file.error());
  const auto layout = layout_of(*file);
  const auto error = [&] { return describe(layout.error()).substr(folder.path().native().size()); };
  if (!layout) return error().substr(1);
  return std::string(to_string(layout->format)) + " width=" + std::to_string(layout->token_bytes) +
         " at=" + std::to_string(layout->first_byte) +
         " tokens=" + std::to_string(layout->token_count) +
         " vocabulary=" + std::to_string(layout->vocabulary);
}

TEST(TokenLayout, the_magic_decides_and_then_the_name) {
  struct Row {
    const char* path;
    std::string bytes;
    const char* answer;
  };
  const std::string raw = tokens_as({1, 2, 3, 4}, 2);
  const Row rows[] = {
      {"a.tok", our_file({1, 2}), ".tok width=2 at=128 tokens=2 vocabulary=50257"},
      {"a.bin", our_file({1, 2}, 4), ".tok width=4 at=128 tokens=2 vocabulary=50257"},
      {"a.bin", llmc_file({1, 2, 3}), "llm.c .bin width=2 at=1024 tokens=3 vocabulary=50257"},
      {"a.bin", llmc_file({1, 2}, 20240801, 7, 4),
       "llm.c .bin width=4 at=1024 tokens=2 vocabulary=128256"},
      {"a.bin", raw, "nanoGPT uint16 .bin width=2 at=0 tokens=4 vocabulary=0"},
      {"a.bin", "", "a.bin: is empty"},
      {"a.bin", raw + "x",
       "a.bin: at byte 8: half a token: a .bin without a magic is nanoGPT's, all uint16, and this "
       "one has 9 bytes (cut short?)"},
      {"a.dat", "\x80\x02}q",
       "a.dat: at byte 0: begins with 80 02 7d 71; that is no token file: it must be a .tok, an "
       "llm.c .bin, a Megatron .bin with its .idx, or a .bin of uint16 (nanoGPT)"},
      {"a.tok", "\x80\x02", "a.tok: at byte 0: begins with 80 02; a .tok begins with TJTOKENS"},
      {"a.tok", "TJTOK", "a.tok: at byte 5: the file ends within its magic, TJTOKENS: cut short"},
      {"a.bin", llmc_file({1}, 20240326),
       "a.bin: at byte 0: the magic is 20240326, llm.c's model; tokens have 20240520 (GPT-2) or "
       "20240801 (Llama 3)"},
      {"a.bin", llmc_file({1}, 20240520, 2),
       "a.bin: at byte 4: the version is 2; with magic 20240520 it must be 1"},
      {"a.bin", llmc_file({1, 2}).substr(0, 1000),
       "a.bin: at byte 1000: the file ends within llm.c's header of 1024 bytes"},
      {"a.bin", llmc_file({1, 2}).substr(0, 1027),
       "a.bin: at byte 8: the token count is 2, which makes a file of 1028 bytes; this one has "
       "1027: cut short"},
      {"a.bin", llmc_file({1, 2}) + "xx",
       "a.bin: at byte 8: the token count is 2, which makes a file of 1028 bytes; this one has "
       "1030: too long"},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) EXPECT_EQ(found(folder, row.path, row.bytes), row.answer);
}

TEST(TokenLayout, megatrons_index_gives_the_width_of_its_bin) {
  const struct {
    std::uint8_t type;
    std::size_t width;
  } types[] = {{1, 1}, {8, 2}, {4, 4}, {5, 8}};
  for (const auto& [type, width] : types) {
    const TemporaryFolder folder;
    folder.write("a.idx", megatron_index({2, 0, 3}, type, width));
    EXPECT_EQ(found(folder, "a.bin", tokens_as({1, 2, 3, 4, 5}, width)),
              "Megatron .bin/.idx width=" + std::to_string(width) + " at=0 tokens=5 vocabulary=0");
  }
}

TEST(TokenLayout, a_wrong_index_is_named_with_its_offset) {
  const std::string good = megatron_index({2, 3}, 8, 2);
  const auto changed = [&](std::size_t at, std::uint64_t value, std::size_t count) {
    std::string index = good;
    return index.replace(at, count, little(value, count));
  };
  struct Row {
    std::string index;
    std::int64_t bin_bytes;
    const char* error;
  };
  const Row rows[] = {
      {good, 10, ""},
      {good.substr(0, 20), 10, "a.idx: at byte 20: the file ends within the header of 34 bytes"},
      {changed(0, 0, 8), 10,
       "a.idx: at byte 0: begins with 00 00 00 00 00 00 00 00; an index of Megatron begins with "
       "MMIDIDX"},
      {changed(9, 2, 8), 10, "a.idx: at byte 9: the version is 2; it must be 1"},
      {changed(17, 6, 1), 10,
       "a.idx: at byte 17: the type of the tokens is 6; it must be 1 (uint8), 8 (uint16), 4 "
       "(int32) or 5 (int64)"},
      {changed(18, ~0ULL, 8), 10,
       "a.idx: at byte 18: there are 18446744073709551615 sequences and 1 document marks, which "
       "does not fit a file of 66 bytes (cut short?)"},
      {good.substr(0, good.size() - 8), 10,
       "a.idx: at byte 18: there are 2 sequences and 1 document marks, which does not fit a file "
       "of 58 bytes (cut short?)"},
      {changed(34, 0x80000000, 4), 10,
       "a.idx: at byte 34: the length of sequence 0 is -2147483648; it must not be negative"},
      {changed(50, 6, 8), 10,
       "a.idx: at byte 50: sequence 1 begins at 6; the ones before it end at 4"},
      {good, 8, "a.bin: at byte 8: the file ends here; its index a.idx asks for 10 bytes"},
  };
  for (const auto& row : rows) {
    const auto layout = megatron_layout("a.idx", view(row.index), row.bin_bytes);
    EXPECT_EQ(layout ? "" : describe(layout.error()), row.error);
  }
}

}  // namespace
}  // namespace tj::trainer
