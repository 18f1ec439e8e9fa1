#include "trainer/workloads/gpt2/gelu_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tj::trainer {
namespace {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(GeluKernel, is_the_tanh_form_and_its_derivative) {
  std::vector<float> x;
  for (float value = -12; value <= 12; value += 0.0078F) x.push_back(value);
  x.insert(x.end(), {-1e4F, 1e4F, 0.0F, -0.0F});
  std::vector<float> y(x.size()), dx(x.size());
  const std::vector<float> dy(x.size(), 2.0F);
  const auto count = static_cast<std::int64_t>(x.size());
  gelu_tanh(x.data(), y.data(), count);
  gelu_tanh_backward(x.data(), dy.data(), dx.data(), count);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(y[i], gelu(x[i]), 1e-6 * std::max(1.0F, std::abs(x[i]))) << x[i];
    if (std::abs(x[i]) > 100) continue;  // the difference quotient has no digits there
    const double slope = (gelu(x[i] + 1e-5) - gelu(x[i] - 1e-5)) / 2e-5;
    EXPECT_NEAR(dx[i], 2 * slope, 1e-5) << x[i];
  }
}

TEST(GeluKernel, bits_do_not_depend_on_the_place) {
  const std::vector<float> x(67, 0.7312F);
  std::vector<float> y(x.size());
  gelu_tanh(x.data(), y.data(), 67);
  for (const float value : y) EXPECT_EQ(value, y[0]);
}

TEST(GeluKernel, not_a_number_stays_one) {
  const float x[] = {std::numeric_limits<float>::quiet_NaN()};
  float y[1];
  gelu_tanh(x, y, 1);
  EXPECT_TRUE(std::isnan(y[0]));
}

}  // namespace
}  // namespace tj::trainer
