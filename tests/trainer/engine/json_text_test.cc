#include "trainer/values/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tj::trainer {
namespace {

std::string nested(int levels) {
  const auto count = static_cast<std::size_t>(levels);
  return std::string(count, '[') + std::string(count, ']');
}

TEST(JsonText, is_read_down_to_a_depth) {
  EXPECT_TRUE(json_of(nested(kJsonDepthMax)).is_array());
  EXPECT_TRUE(json_of(nested(kJsonDepthMax + 1)).is_discarded());
  EXPECT_TRUE(json_of(R"({"a": )" + nested(1'000'000) + "}").is_discarded());
  EXPECT_TRUE(json_of(R"({"a": )").is_discarded());
}

TEST(JsonText, brackets_in_text_and_side_by_side_are_not_deep) {
  const std::string text(1000, '[');
  EXPECT_EQ(json_of("[\"\\\"" + text + "\"]").at(0), "\"" + text);
  std::string many = "[[]";
  for (int i = 0; i < 1000; ++i) many += ",{}";
  EXPECT_EQ(json_of(many + "]").size(), 1001U);
}

}  // namespace
}  // namespace tj::trainer
