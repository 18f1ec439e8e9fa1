#include "trainer/train/gradients.h"

#include <torch/types.h>

#include <cmath>

namespace tj::trainer {
namespace {
constexpr double kNormEps = 1e-6;
}

at::Tensor clip_gradients(const std::vector<at::Tensor>& gradients, double norm_max) {
  const at::NoGradGuard no_grad;
  auto norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2.0);
  if (norm_max > 0) at::_foreach_mul_(gradients, clip_factor(norm, norm_max));
  return norm;
}

at::Tensor clip_factor(const at::Tensor& norm, double norm_max) {
  return (norm_max / (norm + kNormEps)).clamp_max(1.0).to(at::kFloat);
}

ExactSquares exact_squares(const std::vector<at::Tensor>& gradients) {
  ExactSquares squares;
  for (const auto& gradient : gradients) {
    const auto on_host = gradient.detach().cpu().contiguous();
    squares.add({on_host.data_ptr<float>(), static_cast<std::size_t>(on_host.numel())});
  }
  return squares;
}

at::Tensor clip_gradients_exactly(const std::vector<at::Tensor>& gradients, double norm_max) {
  const at::NoGradGuard no_grad;
  auto norm = at::scalar_tensor(std::sqrt(exact_squares(gradients).sum()), at::kDouble);
  if (norm_max > 0) at::_foreach_mul_(gradients, clip_factor(norm, norm_max));
  return norm;
}

at::Tensor unscale_gradients(const std::vector<at::Tensor>& gradients, double scale) {
  const at::NoGradGuard no_grad;
  const auto options = gradients.front().options();
  auto is_infinite = torch::zeros({}, options);
  const auto inverse = torch::full({}, 1.0 / scale, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, is_infinite, inverse);
  return is_infinite;
}

void update_averages(const std::vector<at::Tensor>& averages,
                     const std::vector<at::Tensor>& parameters, double decay) {
  const at::NoGradGuard no_grad;
  at::_foreach_lerp_(averages, parameters, 1.0 - decay);
}

}  // namespace tj::trainer
