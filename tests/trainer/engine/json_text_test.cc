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

TEST(JsonText, a_value_of_another_type_is_named_by_its_key) {
  const auto document = json_of(R"({"a": "x", "b": 1e300})");
  const auto words = [&](auto read) -> std::string {
    try {
      read();
    } catch (const nlohmann::json::exception& failure) {
      return json_words(failure);
    }
    return "";
  };
  EXPECT_EQ(words([&] { json_value<bool>(document.at("a"), "a"); }),
            "a: type must be boolean, but is string");
  EXPECT_EQ(words([&] { json_value<std::int32_t>(document.at("b"), "b"); }),
            "b: must be a whole number in its range, but is 1e+300");
  EXPECT_EQ(json_value<std::string>(document.at("a"), "a"), "x");
}

}  // namespace
}  // namespace tj::trainer
