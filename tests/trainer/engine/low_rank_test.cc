// The arithmetic of PowerSGD: factors, and what they leave out.
#include "trainer/comm/reduce/low_rank.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kRows = 37, kColumns = 53;

struct Factors {
  std::vector<float> left, right;
};

/// Orthonormal columns.
std::vector<float> random_factor(std::size_t rank, std::size_t length, std::uint64_t seed) {
  std::vector<float> factor(rank * length);
  refill(factor, length, seed);
  orthonormalise(factor, length);
  return factor;
}

/// A matrix whose singular values are `sizes`.
std::vector<float> matrix_of(const std::vector<float>& sizes) {
  const auto left = random_factor(sizes.size(), kRows, 1);
  const auto right = random_factor(sizes.size(), kColumns, 2);
  std::vector<float> values(kRows * kColumns);
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (std::size_t row = 0; row < kRows; ++row)
      for (std::size_t column = 0; column < kColumns; ++column)
        values[row * kColumns + column] +=
            sizes[k] * left[k * kRows + row] * right[k * kColumns + column];
  return values;
}

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

/// A step of a single rank: what is left out.
std::vector<float> step(std::vector<float>& values, std::vector<float>& factor) {
  const MatrixView view{.values = values.data(), .rows = kRows, .columns = kColumns};
  const std::size_t rank = factor.size() / kColumns;
  orthonormalise(factor, kColumns);
  std::vector<float> left(rank * kRows), right(rank * kColumns), error(values.size());
  multiply(view, factor, left);
  orthonormalise(left, kRows);
  multiply_transposed(view, left, right);
  rebuild(view, left, right, right, error);
  factor = right;
  return error;
}

TEST(LowRank, a_matrix_of_that_rank_is_sent_whole) {
  const auto exact = matrix_of({3, 2, 1, 0.5F});
  auto values = exact;
  auto factor = random_factor(4, kColumns, 7);
  const auto error = step(values, factor);
  EXPECT_LT(norm_of(error), 1e-5);
  for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(values[i], exact[i], 1e-5);
}

TEST(LowRank, what_is_sent_and_what_is_left_out_are_the_matrix) {
  const auto exact = matrix_of({3, 2, 1, 0.5F, 0.4F, 0.3F});
  auto values = exact;
  auto factor = random_factor(2, kColumns, 7);
  const auto error = step(values, factor);
  for (std::size_t i = 0; i < exact.size(); ++i)
    ASSERT_NEAR(values[i] + error[i], exact[i], 1e-6) << i;
}

TEST(LowRank, a_warm_start_finds_the_largest) {
  const auto exact = matrix_of({3, 2, 0.1F, 0.1F, 0.1F});
  auto factor = random_factor(2, kColumns, 7);
  for (int turn = 0; turn < 10; ++turn) {
    auto values = exact;
    const auto error = step(values, factor);
    if (turn == 9) {
      EXPECT_NEAR(norm_of(error), 0.1 * std::sqrt(3.0), 1e-4);
    }
  }
}

TEST(LowRank, columns_become_orthonormal_and_those_without_anything_zeros) {
  std::vector<float> factor(4 * kRows);
  refill(factor, kRows, 3);
  std::copy_n(factor.begin(), kRows, factor.begin() + 2 * kRows);  // the third is the first again
  for (auto& value : std::span(factor).first(kRows)) value *= 1e-25F;  // its square is nothing
  orthonormalise(factor, kRows);
  for (std::size_t one = 0; one < 4; ++one) {
    for (std::size_t other = 0; other <= one; ++other) {
      double product = 0;
      for (std::size_t i = 0; i < kRows; ++i)
        product += static_cast<double>(factor[one * kRows + i]) *
                   static_cast<double>(factor[other * kRows + i]);
      EXPECT_NEAR(product, one == other && one != 2 ? 1 : 0, 1e-6) << one << " and " << other;
    }
  }
}

TEST(LowRank, only_zeros_are_filled_again_and_always_alike) {
  std::vector<float> factor(2 * kColumns);
  factor[kColumns] = 5;
  auto other = factor;
  refill(factor, kColumns, 11);
  refill(other, kColumns, 11);
  EXPECT_EQ(factor, other);
  EXPECT_EQ(factor[kColumns], 5);
  EXPECT_EQ(factor[kColumns + 1], 0);
  EXPECT_GT(norm_of(std::span(factor).first(kColumns)), 1);
  std::vector<float> of_other_seed(kColumns);
  refill(of_other_seed, kColumns, 12);
  EXPECT_NE(of_other_seed, std::vector<float>(factor.begin(), factor.begin() + kColumns));
}

TEST(LowRank, what_is_not_finite_shows_in_the_first_factor) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto values = matrix_of({1});
    values[100] = bad;
    const auto factor = random_factor(4, kColumns, 7);
    std::vector<float> left(4 * kRows);
    multiply({.values = values.data(), .rows = kRows, .columns = kColumns}, factor, left);
    EXPECT_FALSE(std::isfinite(norm_of(left)));
  }
}

/// Of all bits, in their order.
std::uint64_t digest(std::span<const float> values) {
  std::uint64_t sum = 0;
  for (const float value : values) sum = mixed(sum ^ std::bit_cast<std::uint32_t>(value));
  return sum;
}

// Ranks on CPUs of several kinds must not drift apart: other vectors, the same numbers.
TEST(LowRank, has_the_same_bits_on_every_cpu) {
  auto values = matrix_of({3, 2, 1, 0.5F, 0.4F, 0.3F});
  auto factor = random_factor(4, kColumns, 7);
  const auto error = step(values, factor);
  EXPECT_EQ(digest(values), 6000193552086111063U);
  EXPECT_EQ(digest(factor), 3972045030405827470U);
  EXPECT_EQ(digest(error), 15132585468457715515U);
}

TEST(LowRank, is_for_matrices_that_are_large_enough) {
  EXPECT_TRUE(is_worth_factors(512, 512, 4));
  EXPECT_FALSE(is_worth_factors(1, 512, 4));
  EXPECT_FALSE(is_worth_factors(16, 16, 4));
}

}  // namespace
}  // namespace tj::trainer
