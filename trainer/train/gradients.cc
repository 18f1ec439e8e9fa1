#include "trainer/train/gradients.h"

#include <torch/torch.h>

#include <cmath>

namespace tj::trainer {
namespace {
constexpr double kNormEps = 1e-6;
}

double clip_gradients(const std::vector<at::Tensor>& gradients, double norm_max) {
  const at::NoGradGuard no_grad;
  const auto norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2.0);
  if (norm_max > 0) {
    const auto factor = norm_max / (norm + kNormEps);
    // A factor of 1 changes no bit, so the pass over all gradients is saved.
    if (factor.item<double>() < 1.0) at::_foreach_mul_(gradients, factor);
  }
  return norm.item<double>();
}

float clip_factor(double norm, double norm_max) {
  if (norm_max == 0) return 1;
  return static_cast<float>(std::min(1.0, norm_max / (norm + kNormEps)));
}

ExactSquares exact_squares(const std::vector<at::Tensor>& gradients) {
  ExactSquares squares;
  for (const auto& gradient : gradients) {
    const auto on_host = gradient.detach().cpu().contiguous();
    squares.add({on_host.data_ptr<float>(), static_cast<std::size_t>(on_host.numel())});
  }
  return squares;
}

double clip_gradients_exactly(const std::vector<at::Tensor>& gradients, double norm_max) {
  const at::NoGradGuard no_grad;
  const double norm = std::sqrt(exact_squares(gradients).sum());
  const float factor = clip_factor(norm, norm_max);
  if (factor < 1) at::_foreach_mul_(gradients, factor);
  return norm;
}

bool unscale_gradients(const std::vector<at::Tensor>& gradients, double scale) {
  const at::NoGradGuard no_grad;
  const auto options = gradients.front().options();
  auto is_infinite = torch::zeros({1}, options);
  const auto inverse = torch::full({1}, 1.0 / scale, options);
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, is_infinite, inverse);
  return is_infinite.item<double>() == 0;
}

void update_averages(const std::vector<at::Tensor>& averages,
                     const std::vector<at::Tensor>& parameters, double decay) {
  const at::NoGradGuard no_grad;
  at::_foreach_lerp_(averages, parameters, 1.0 - decay);
}

}  // namespace tj::trainer
