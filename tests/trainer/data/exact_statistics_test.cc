#include "trainer/data/lerobot/exact_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace tj::trainer {
namespace {

std::vector<float> numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(2.0F, 5.0F);
  std::vector<float> made(count);
  for (auto& value : made) value = normal(random);
  for (std::size_t i = 0; i < count; i += 7) made[i] = 0;  // many of one kind
  return made;
}

double quantile(std::vector<float> values, double share) {
  std::ranges::sort(values);
  const auto place = share * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const auto high = std::min(low + 1, values.size() - 1);
  const auto first = static_cast<double>(values[low]), second = static_cast<double>(values[high]);
  return first + (second - first) * (place - static_cast<double>(low));
}

FeatureStatistics statistics_of(const std::vector<std::vector<float>>& parts) {
  FirstPass first = first_pass_of(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) first.join(first_pass_of(parts[i]));
  const SecondSearch search(first);
  SecondPass second = second_pass_of(parts.front(), search);
  for (std::size_t i = 1; i < parts.size(); ++i) second.join(second_pass_of(parts[i], search));
  return exact_statistics({&first, 1}, {&second, 1});
}

TEST(ExactStatistics, bits_are_ordered_as_their_numbers) {
  const float values[] = {-std::numeric_limits<float>::max(), -3.5F, -1e-40F, 0.0F, 1e-40F, 0.5F,
                          std::numeric_limits<float>::max()};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    EXPECT_EQ(from_ordered_bits(ordered_bits(values[i])), values[i]);
    if (i == 0) continue;
    EXPECT_LT(ordered_bits(values[i - 1]), ordered_bits(values[i]));
  }
  EXPECT_EQ(ordered_bits(-0.0F), ordered_bits(0.0F));
}

TEST(ExactStatistics, are_those_of_all_values_at_once) {
  for (const std::size_t count : {1U, 2U, 3U, 100U, 5000U}) {
    const auto all = numbers(count, static_cast<std::uint32_t>(count));
    const auto half = all.begin() + static_cast<std::ptrdiff_t>((count + 1) / 2);
    std::vector<std::vector<float>> parts{{all.begin(), half}};
    if (half != all.end()) parts.push_back({half, all.end()});
    const auto found = statistics_of(parts);
    double sum = 0, squares = 0;
    for (const double value : all) sum += value;
    const auto mean = sum / static_cast<double>(count);
    for (const double value : all) squares += (value - mean) * (value - mean);
    EXPECT_EQ(found.count, static_cast<std::int64_t>(count));
    EXPECT_NEAR(found.mean[0], mean, 1e-12);
    EXPECT_NEAR(found.std[0], std::sqrt(squares / static_cast<double>(count)), 1e-12);
    EXPECT_EQ(found.min[0], *std::ranges::min_element(all));
    EXPECT_EQ(found.max[0], *std::ranges::max_element(all));
    EXPECT_EQ(found.q01[0], quantile(all, 0.01));
    EXPECT_EQ(found.q10[0], quantile(all, 0.10));
    EXPECT_EQ(found.q50[0], quantile(all, 0.50));
    EXPECT_EQ(found.q90[0], quantile(all, 0.90));
    EXPECT_EQ(found.q99[0], quantile(all, 0.99));
  }
}

}  // namespace
}  // namespace tj::trainer
