#include "trainer/train/gradients.h"

#include <torch/torch.h>

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
