#include "trainer/values/glob.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(Glob, a_distance_counts_what_must_change) {
  struct Case {
    const char* pattern;
    const char* name;
    std::size_t distance;
  };
  constexpr Case kCases[] = {{"", "", 0},
                             {"", "ab", 2},
                             {"ab", "", 2},
                             {"kitten", "sitting", 3},
                             {"*", "", 0},
                             {"*", "anything", 0},
                             {"h.*.bias", "h.0.bias", 0},
                             {"h.*.bias", "h.0.mlp.bias", 0},
                             {"h.*.bais", "h.0.bias", 2},
                             {"h.?.bias", "h.7.bias", 0},
                             {"h.?.bias", "h.77.bias", 1},
                             {"**.w", "a.w", 0},
                             {"wte*", "transformer.wte.weight", 2}};
  for (const auto& [pattern, name, distance] : kCases)
    EXPECT_EQ(glob_distance(pattern, name), distance) << pattern << " to " << name;
}

TEST(Glob, what_matches_is_at_no_distance) {
  for (const std::string name : {"h.0.mlp.weight", "h.11.mlp.weight", "wte", "h."})
    for (const std::string pattern : {"h.*", "*.mlp.*", "w?e", "*", "h.?.mlp.weight"})
      EXPECT_EQ(glob_distance(pattern, name) == 0, matches(pattern, name)) << pattern << name;
}

TEST(Glob, the_nearest_names_come_first_and_are_three) {
  const std::vector<std::string> names{"wte.weight", "h.0.bias", "h.1.bias", "h.0.weight"};
  EXPECT_EQ(nearest_names("h.*.bais", names),
            (std::vector<std::string>{"h.0.bias", "h.1.bias", "h.0.weight"}));
  EXPECT_EQ(nearest_names("x", {}), std::vector<std::string>());
  EXPECT_EQ(
      nearest_names("c_fc.*", std::vector<std::string>{"h.0.ln.bias", "h.0.mlp.c_fc.bias"})[0],
      "h.0.mlp.c_fc.bias");
  EXPECT_EQ(one_of_text(nearest_names("wte.wieght", std::span(names).first(2))),
            "wte.weight or h.0.bias");
}

}  // namespace
}  // namespace tj::trainer
