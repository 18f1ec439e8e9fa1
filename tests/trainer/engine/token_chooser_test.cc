#include "trainer/workload/token_chooser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tj::trainer {
namespace {

/// Logarithms of shares that are easily told: 0.1, 0.4, 0.05, 0.25, 0.2.
std::vector<float> example_logits() {
  std::vector<float> logits;
  for (const double share : {0.1, 0.4, 0.05, 0.25, 0.2})
    logits.push_back(static_cast<float>(std::log(share) + 3));
  return logits;
}

const std::vector<bool> kAll(5, true);

using Shares = std::vector<std::pair<std::int64_t, double>>;

void expect_shares(const ChoosingRule& rule, const std::vector<bool>& may_choose,
                   const Shares& expected) {
  const auto found = TokenChooser(rule, may_choose).shares(example_logits());
  ASSERT_TRUE(found) << describe(found.error());
  ASSERT_EQ(found->size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*found)[i].token, expected[i].first) << i;
    EXPECT_NEAR((*found)[i].probability, expected[i].second, 1e-6) << i;
  }
}

TEST(TokenChooser, shares_are_those_of_the_table) {
  expect_shares({}, kAll, {{0, 0.1}, {1, 0.4}, {2, 0.05}, {3, 0.25}, {4, 0.2}});
  expect_shares({.top_k = 2}, kAll, {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_shares({.top_k = 99}, kAll, {{1, 0.4}, {3, 0.25}, {4, 0.2}, {0, 0.1}, {2, 0.05}});
  expect_shares({.top_p = 0.6}, kAll, {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_shares({.top_p = 0.7}, kAll, {{1, 0.4 / 0.85}, {3, 0.25 / 0.85}, {4, 0.2 / 0.85}});
  expect_shares({.top_p = 1e-9}, kAll, {{1, 1}});
  // Of those that top-k leaves, top-p takes its share: 0.4 / 0.85 is less than one half.
  expect_shares({.top_k = 3, .top_p = 0.5}, kAll, {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_shares({.temperature = 0}, kAll, {{1, 1}});
  // At one half shares are squared: 0.01, 0.16, 0.0025, 0.0625 and 0.04 of 0.275.
  expect_shares({.temperature = 0.5, .top_k = 2}, kAll, {{1, 0.16 / 0.2225}, {3, 0.0625 / 0.2225}});
  expect_shares({.temperature = 0.5}, kAll,
                {{0, 0.01 / 0.275},
                 {1, 0.16 / 0.275},
                 {2, 0.0025 / 0.275},
                 {3, 0.0625 / 0.275},
                 {4, 0.04 / 0.275}});
}

TEST(TokenChooser, what_may_not_be_chosen_has_no_share) {
  expect_shares({}, {true, false, true, true, true},
                {{0, 0.1 / 0.6}, {2, 0.05 / 0.6}, {3, 0.25 / 0.6}, {4, 0.2 / 0.6}});
  expect_shares({.temperature = 0}, {true, false, true}, {{0, 1}});  // the rest only fills up
}

TEST(TokenChooser, chooses_as_often_as_the_shares_say) {
  const TokenChooser chooser({}, kAll);
  std::vector<int> counts(5);
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const auto token = chooser.choose(example_logits(), uniform_of(7, 0, static_cast<unsigned>(i)));
    ASSERT_TRUE(token);
    ++counts[static_cast<std::size_t>(*token)];
  }
  const double shares[] = {0.1, 0.4, 0.05, 0.25, 0.2};
  for (std::size_t i = 0; i < counts.size(); ++i)  // six standard deviations
    EXPECT_NEAR(counts[i] / double{kDraws}, shares[i],
                6 * std::sqrt(shares[i] * (1 - shares[i]) / kDraws));
}

TEST(TokenChooser, the_bounds_of_the_draw_fall_on_the_first_and_the_last) {
  const TokenChooser chooser({}, kAll);
  EXPECT_EQ(*chooser.choose(example_logits(), 0), 0);
  EXPECT_EQ(*chooser.choose(example_logits(), std::nextafter(1.0, 0.0)), 4);
}

TEST(TokenChooser, of_equals_the_lower_id_comes_first) {
  const std::vector<float> equal(5, 1.0F);
  EXPECT_EQ(*TokenChooser({.temperature = 0}, kAll).choose(equal, 0.9), 0);
}

TEST(TokenChooser, a_logit_that_is_no_number_is_named) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto logits = example_logits();
    logits[3] = bad;
    EXPECT_EQ(describe(TokenChooser({}, kAll).shares(logits).error()),
              "the logit of token 3 is not finite; the weights are damaged, or the precision is "
              "too low");
    EXPECT_TRUE(TokenChooser({}, {true, true, true, false, true}).shares(logits));
  }
}

TEST(TokenChooser, draws_are_a_function_of_seed_sample_and_position) {
  EXPECT_EQ(uniform_of(1, 2, 3), uniform_of(1, 2, 3));
  EXPECT_NE(uniform_of(1, 2, 3), uniform_of(2, 2, 3));
  EXPECT_NE(uniform_of(1, 2, 3), uniform_of(1, 3, 3));
  EXPECT_NE(uniform_of(1, 2, 3), uniform_of(1, 2, 4));
}

}  // namespace
}  // namespace tj::trainer
