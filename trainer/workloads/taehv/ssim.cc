#include "trainer/workloads/taehv/ssim.h"

#include <torch/types.h>

#include <algorithm>

namespace tj::trainer {
namespace {

constexpr double kSigma = 1.5;        // pixels
constexpr std::int64_t kWindow = 11;  // pixels
constexpr std::int64_t kSmallWindow = 7;
constexpr double kLuminance = 0.01 * 0.01;  // C1 and C2 of the paper, for values up to 1
constexpr double kContrast = 0.03 * 0.03;

at::Tensor gaussian(std::int64_t size, const at::TensorOptions& options) {
  const auto distance = torch::arange(size, options) - static_cast<double>(size - 1) / 2;
  const auto weights = at::exp(distance.square() / (-2 * kSigma * kSigma));
  return weights / weights.sum();
}

}  // namespace

at::Tensor ssim(const at::Tensor& one, const at::Tensor& other) {
  const auto height = one.size(-2), width = one.size(-1);
  const auto window =
      gaussian(std::min(height, width) < kWindow ? kSmallWindow : kWindow, one.options());
  // Each channel of each frame is a picture of its own.
  const auto pictures = [&](const at::Tensor& t) { return t.reshape({-1, 1, height, width}); };
  const auto blurred = [&](const at::Tensor& t) {
    return at::conv2d(at::conv2d(t, window.view({1, 1, -1, 1})), window.view({1, 1, 1, -1}));
  };
  const auto x = pictures(one), y = pictures(other);
  const auto mean_x = blurred(x), mean_y = blurred(y);
  const auto variance_x = blurred(x * x) - mean_x * mean_x;
  const auto variance_y = blurred(y * y) - mean_y * mean_y;
  const auto covariance = blurred(x * y) - mean_x * mean_y;
  const auto similarity =
      (2 * mean_x * mean_y + kLuminance) * (2 * covariance + kContrast) /
      ((mean_x.square() + mean_y.square() + kLuminance) * (variance_x + variance_y + kContrast));
  return similarity.mean();
}

}  // namespace tj::trainer
