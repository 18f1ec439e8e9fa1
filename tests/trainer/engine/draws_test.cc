#include "trainer/workload/draws.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/values/philox_text.h"

namespace tj::trainer {
namespace {

constexpr Draw kDraw{.seed = 0x123456789abcdef0, .purpose = 3, .first_sample = (1LL << 33) + 5};

TEST(Draws, the_words_of_the_host_are_those_of_a_device) {
  for (const std::int64_t count : {1, 4, 7, 1000})
    EXPECT_TRUE(words_by_loop(kDraw, 5, count).equal(words_by_tensors(kDraw, 5, count, at::kCPU)))
        << count;
  const auto words = words_by_tensors(kDraw, 50, 1000, at::kCPU);
  EXPECT_GE(words.min().item<std::int64_t>(), 0);
  EXPECT_LT(words.max().item<std::int64_t>(), std::int64_t{1} << 32);
}

TJ_PHILOX_WORD

/// What a GPU compiles from its text is C++ of the same meaning.
TEST(Draws, the_kernel_has_the_words_of_the_loop) {
  constexpr std::int64_t kRows = 3, kCount = 50;
  const auto words = words_by_loop(kDraw, kRows, kCount);
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t element = 0; element < kCount; ++element)
      EXPECT_EQ(philox_word<std::int64_t>(element, kDraw.first_sample + row,
                                          static_cast<long long>(kDraw.seed), kDraw.purpose),
                words[row][element].item<std::int64_t>());
  const std::string text = TJ_TEXT(TJ_PHILOX_WORD);
  EXPECT_TRUE(text.starts_with("template <typename T> T philox_word(")) << text;
}

TEST(Draws, a_row_depends_on_its_sample_and_not_on_the_batch) {
  const auto whole = draw_normal(kDraw, {6, 3, 5}, at::kCPU);
  auto later = kDraw;
  later.first_sample += 4;
  EXPECT_TRUE(draw_normal(later, {2, 3, 5}, at::kCPU).equal(whole.narrow(0, 4, 2)));
  const auto beta = draw_beta(kDraw, 1.5, 1, {6}, at::kCPU);
  EXPECT_TRUE(draw_beta(later, 1.5, 1, {2}, at::kCPU).equal(beta.narrow(0, 4, 2)));
}

TEST(Draws, seed_purpose_and_sample_each_make_other_numbers_and_length_does_not) {
  const auto row = draw_uniform(kDraw, {1, 64}, at::kCPU);
  EXPECT_TRUE(draw_uniform(kDraw, {1, 67}, at::kCPU).narrow(1, 0, 64).equal(row));
  for (const auto change : {0, 1, 2, 3}) {
    Draw other = kDraw;
    if (change == 0) other.seed += 1;
    if (change == 1) other.seed += std::uint64_t{1} << 40;
    if (change == 2) other.purpose += 1;
    if (change == 3) other.first_sample -= 1LL << 33;
    EXPECT_FALSE(draw_uniform(other, {1, 64}, at::kCPU).equal(row)) << change;
  }
}

/// Mean and variance over 200,000 numbers; their errors are below four standard ones.
void expect_moments(const at::Tensor& values, double mean, double variance, const char* what) {
  const auto x = values.to(at::kDouble);
  const double error = 4 * std::sqrt(variance / static_cast<double>(x.numel()));
  EXPECT_NEAR(x.mean().item<double>(), mean, error) << what;
  EXPECT_NEAR(x.var().item<double>() / variance, 1, 0.03) << what;
  EXPECT_TRUE(at::isfinite(x).all().item<bool>()) << what;
}

TEST(Draws, each_law_has_its_mean_and_variance) {
  const std::vector<std::int64_t> shape{200, 1000};
  const auto uniform = draw_uniform(kDraw, shape, at::kCPU);
  expect_moments(uniform, 0.5, 1.0 / 12, "uniform");
  EXPECT_GT(uniform.min().item<double>(), 0);
  EXPECT_LT(uniform.max().item<double>(), 1);
  expect_moments(draw_normal(kDraw, shape, at::kCPU), 0, 1, "normal");
  expect_moments(draw_keep_mask(kDraw, 0.8, shape, at::kCPU), 1, 0.25, "mask");
  for (const auto& [a, b] : {std::pair(1.5, 1.0), std::pair(0.5, 0.5), std::pair(2.0, 5.0)}) {
    const auto beta = draw_beta(kDraw, a, b, {20, 1000}, at::kCPU);
    expect_moments(beta, a / (a + b), a * b / ((a + b) * (a + b) * (a + b + 1)), "beta");
    EXPECT_GE(beta.min().item<double>(), 0);
    EXPECT_LE(beta.max().item<double>(), 1);
  }
}

/// Beta(a, 1) is u^(1/a): its share below x is x^a.
TEST(Draws, beta_has_the_shares_of_its_law) {
  const auto beta = draw_beta(kDraw, 1.5, 1, {50, 1000}, at::kCPU);
  for (const double x : {0.1, 0.3, 0.5, 0.9})
    EXPECT_NEAR(beta.lt(x).to(at::kDouble).mean().item<double>(), std::pow(x, 1.5), 0.01) << x;
}

TEST(Draws, a_mask_holds_nothing_but_zero_and_the_inverse_of_its_share) {
  const auto mask = draw_keep_mask(kDraw, 0.8, {3, 1001}, at::kCPU);
  EXPECT_TRUE(mask.eq(0).logical_or(mask.eq(1 / 0.8F)).all().item<bool>());
  const auto by_words = words_by_loop(kDraw, 3, 1001).lt(std::llround(0.8 * 0x1p32));
  EXPECT_TRUE(mask.gt(0).equal(by_words));
  EXPECT_TRUE(draw_keep_mask(kDraw, 1, {1, 9}, at::kCPU).equal(torch::ones({1, 9})));
}

}  // namespace
}  // namespace tj::trainer
