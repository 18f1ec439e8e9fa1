#include "trainer/checkpoint/zip_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

template <typename T>
T number_at(const std::string& bytes, std::size_t place) {
  T value{};
  std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Where the bytes of the entry begin whose header is at `header`.
std::size_t begin_of(const std::string& archive, std::size_t header) {
  return header + 30 + number_at<std::uint16_t>(archive, header + 26) +
         number_at<std::uint16_t>(archive, header + 28);
}

TEST(ZipFile, has_each_entry_in_one_piece_at_a_multiple_of_64) {
  const TemporaryFolder folder;
  const std::string one = "one", two(100, 'x');
  const std::vector<ZipEntry> entries{{.name = "a/first", .parts = {bytes_of(one), bytes_of(two)}},
                                      {.name = "a/none", .parts = {}},
                                      {.name = "a/last", .parts = {bytes_of(two)}}};
  const auto written = write_zip(folder.path() / "x", entries);
  ASSERT_TRUE(written) << describe(written.error());
  std::ifstream file(folder.path() / "x", std::ios::binary);
  const std::string archive{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(static_cast<std::int64_t>(archive.size()), written->bytes);
  const auto end = archive.size() - 22;
  EXPECT_EQ(number_at<std::uint32_t>(archive, end), 0x06054b50U);
  EXPECT_EQ(number_at<std::uint16_t>(archive, end + 10), 3);
  std::vector<std::string> contents;
  std::size_t entry = number_at<std::uint32_t>(archive, end + 16);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(number_at<std::uint32_t>(archive, entry), 0x02014b50U);
    const auto begin = begin_of(archive, number_at<std::uint32_t>(archive, entry + 42));
    EXPECT_EQ(begin % kZipAlignment, 0U);
    contents.push_back(archive.substr(begin, number_at<std::uint32_t>(archive, entry + 24)));
    entry += 46U + number_at<std::uint16_t>(archive, entry + 28) +
             number_at<std::uint16_t>(archive, entry + 30);
  }
  EXPECT_EQ(entry, end);
  EXPECT_EQ(contents, (std::vector<std::string>{one + two, "", two}));
}

TEST(ZipFile, says_in_zip64_what_exceeds_four_gigabytes) {
  constexpr std::uint64_t kLarge = 5'000'000'000;
  const ZipPlace small{.name = "s", .crc32 = 1, .bytes = 7, .header_at = 64};
  const ZipPlace large{.name = "l", .crc32 = 2, .bytes = kLarge, .header_at = 128};
  const ZipPlace behind{.name = "b", .crc32 = 3, .bytes = 7, .header_at = kLarge + 256};
  const auto header = zip_local_header(large);
  EXPECT_EQ((large.header_at + header.size()) % kZipAlignment, 0U);
  EXPECT_EQ(number_at<std::uint32_t>(header, 18), 0xffffffffU);
  EXPECT_EQ(number_at<std::uint16_t>(header, 31), 1);  // behind the name
  EXPECT_EQ(number_at<std::uint16_t>(header, 33), 16);
  EXPECT_EQ(number_at<std::uint64_t>(header, 35), kLarge);

  constexpr std::uint64_t kBegin = 2 * kLarge;
  const auto directory = zip_directory(std::vector{small, large, behind}, kBegin);
  const std::size_t second = 46 + 1, third = second + 46 + 1 + 4 + 16;
  EXPECT_EQ(number_at<std::uint16_t>(directory, 30), 0);  // of the small one: nothing more
  EXPECT_EQ(number_at<std::uint64_t>(directory, second + 47 + 4), kLarge);
  EXPECT_EQ(number_at<std::uint64_t>(directory, third + 47 + 4), behind.header_at);
  const std::size_t end64 = third + 46 + 1 + 4 + 8, locator = end64 + 56, end = locator + 20;
  ASSERT_EQ(directory.size(), end + 22);
  EXPECT_EQ(number_at<std::uint32_t>(directory, end64), 0x06064b50U);
  EXPECT_EQ(number_at<std::uint64_t>(directory, end64 + 32), 3U);
  EXPECT_EQ(number_at<std::uint64_t>(directory, end64 + 40), end64);  // bytes of the entries
  EXPECT_EQ(number_at<std::uint64_t>(directory, end64 + 48), kBegin);
  EXPECT_EQ(number_at<std::uint32_t>(directory, locator), 0x07064b50U);
  EXPECT_EQ(number_at<std::uint64_t>(directory, locator + 8), kBegin + end64);
  EXPECT_EQ(number_at<std::uint32_t>(directory, end + 16), 0xffffffffU);
}

}  // namespace
}  // namespace tj::trainer
