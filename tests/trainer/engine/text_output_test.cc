#include "trainer/workload/text_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {

/// All that a stream shows of `bytes` in pieces of `size`.
std::string in_pieces(std::string_view bytes, std::size_t size) {
  Utf8Stream stream;
  std::string shown;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    const auto text = stream.push(bytes.substr(at, size));
    EXPECT_EQ(valid_utf8_bytes(text), text.size()) << "at byte " << at;
    shown += text;
  }
  return shown + stream.finish();
}

TEST(Utf8Stream, shows_a_character_with_its_last_byte_and_not_before) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xf0\x9f"), "a");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80\xe4"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(stream.push("\xb8\xad!"), "\xe4\xb8\xad!");
  EXPECT_EQ(stream.push("\xc3"), "");
  EXPECT_EQ(stream.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, pieces_of_any_size_show_what_the_whole_does) {
  std::string all = "plain, na\xc3\xafve, \xe4\xb8\xad\xe6\x96\x87, \xf0\x9f\x98\x80";
  for (int byte = 0; byte < 256; ++byte) {  // and what is no UTF-8, in many neighbourhoods
    all += static_cast<char>(byte);
    all += static_cast<char>(255 - byte);
    all += "\xe0\x80\xed\xa0\x80\xf4\x90";
    all += static_cast<char>(byte);
  }
  for (const std::size_t size : {1U, 2U, 3U, 5U, 7U})
    EXPECT_EQ(in_pieces(all, size), with_invalid_utf8_replaced(all)) << size;
}

TEST(TextOutput, a_text_ends_with_its_line) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    TextOutput output(ends[1]);
    for (const char* const piece : {"one", " \xc3", "\xa4"}) EXPECT_TRUE(output.write(piece));
    EXPECT_TRUE(output.end_text());
    EXPECT_TRUE(output.write("two\n"));
    EXPECT_TRUE(output.end_text());
    EXPECT_TRUE(output.end_text());
  }
  ::close(ends[1]);
  std::array<char, 64> bytes{};
  const auto count = ::read(ends[0], bytes.data(), bytes.size());
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))),
            "one \xc3\xa4\ntwo\n");
  ::close(ends[0]);
}

TEST(TextOutput, a_full_disk_is_told) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  const auto written = TextOutput(full).write("text");
  ASSERT_FALSE(written);
  EXPECT_EQ(describe(written.error()),
            "standard output: can't be written: No space left on device");
  ::close(full);
}

}  // namespace
}  // namespace tj::trainer
