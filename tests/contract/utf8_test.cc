#include "contract/utf8.h"

#include <gtest/gtest.h>

namespace tj {
namespace {

TEST(Utf8, invalid_parts_are_replaced_as_python_does) {
  const std::pair<std::string, std::string> rows[] = {
      {"plain", "plain"},
      {"\xe4\xba\xba", "\xe4\xba\xba"},
      {"\xff", "\xef\xbf\xbd"},
      {"a\xe4\xba", "a\xef\xbf\xbd"},
      {"\xe4\xba z", "\xef\xbf\xbd z"},
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
      {"\xf0\x9f\x98", "\xef\xbf\xbd"},
  };
  for (const auto& [text, expected] : rows) EXPECT_EQ(with_invalid_utf8_replaced(text), expected);
}

TEST(Utf8, code_points_are_written) {
  const auto written = [](std::uint32_t code_point) {
    std::string text;
    append_utf8(text, code_point);
    return text;
  };
  EXPECT_EQ(written('a'), "a");
  EXPECT_EQ(written(0xe9), "\xc3\xa9");
  EXPECT_EQ(written(0x4eba), "\xe4\xba\xba");
  EXPECT_EQ(written(0x1f600), "\xf0\x9f\x98\x80");
  EXPECT_EQ(written(0xd800), "\xef\xbf\xbd");
  EXPECT_EQ(written(0x110000), "\xef\xbf\xbd");
}

}  // namespace

TEST(Utf8, text_is_cut_between_characters) {
  const std::string person = "\xe4\xba\xba";  // three bytes
  EXPECT_EQ(utf8_prefix("a" + person, 3), "a");
  EXPECT_EQ(utf8_prefix("a" + person, 4), "a" + person);
  EXPECT_EQ(utf8_prefix("abc", 0), "");
  EXPECT_EQ(utf8_suffix(person + "a", 3), "a");
  EXPECT_EQ(utf8_suffix(person + "a", 4), person + "a");
  EXPECT_EQ(utf8_suffix("abc", 0), "");
}

}  // namespace tj
