#include "trainer/workload/parameter_groups.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

std::string refusal(const std::string& text) {
  const auto group = parameter_group_from(text);
  return group ? "" : describe(group.error());
}

TEST(ParameterGroups, a_text_gives_one_factor_or_both) {
  const auto both = parameter_group_from("transformer.h.*.mlp.*:lr=0.1,weight-decay=0");
  ASSERT_TRUE(both);
  EXPECT_EQ(*both, (ParameterGroup{"transformer.h.*.mlp.*", 0.1, 0.0}));
  EXPECT_EQ(*parameter_group_from("*:lr=2"), (ParameterGroup{"*", 2.0, std::nullopt}));
}

TEST(ParameterGroups, nonsense_is_refused_with_the_form) {
  const std::string form = "; it must be PATTERN:lr=FACTOR,weight-decay=NUMBER, or one of the two";
  for (const std::string text : {"", "wte", "wte:", ":lr=1", "wte:lr", "wte:momentum=1", "wte:,"})
    EXPECT_EQ(refusal(text), "--group: is \"" + text + "\"" + form);
  EXPECT_EQ(refusal("wte:lr=fast"), "--group: is \"wte:lr=fast\"; lr must be a number from 0");
  EXPECT_EQ(refusal("wte:weight-decay=-1"),
            "--group: is \"wte:weight-decay=-1\"; weight-decay must be a number from 0");
}

TEST(ParameterGroups, vectors_do_not_decay_and_the_last_match_wins) {
  const TensorSpec tensors[] = {{"wte.weight", {8, 4}}, {"h.0.weight", {4, 4}}, {"h.0.bias", {4}}};
  const ParameterGroup groups[] = {{"h.*", 0.5, std::nullopt}, {"*.weight", std::nullopt, 0.2}};
  const auto rules = update_rules(tensors, {.weight_decay = 0.1}, groups);
  ASSERT_TRUE(rules);
  EXPECT_EQ(*rules, (std::vector<UpdateRule>{{1, 0.2}, {0.5, 0.2}, {0.5, 0}}));
  EXPECT_EQ(*update_rules(tensors, {.weight_decay = 0.1}, {}),
            (std::vector<UpdateRule>{{1, 0.1}, {1, 0.1}, {1, 0}}));
}

TEST(ParameterGroups, one_that_matches_nothing_is_a_mistake) {
  const TensorSpec tensors[] = {{"wte.weight", {8, 4}}};
  const ParameterGroup groups[] = {{"wpe.*", 0.5, std::nullopt}};
  const auto rules = update_rules(tensors, {.weight_decay = 0.1}, groups);
  ASSERT_FALSE(rules);
  EXPECT_EQ(describe(rules.error()),
            "--group: is \"wpe.*\"; it must match the name of a tensor, such as wte.weight");
}

}  // namespace
}  // namespace tj::trainer
