#include "trainer/workloads/pi0/visibility.h"

#include <torch/types.h>

#include "trainer/workload/rotary.h"

namespace tj::trainer {
namespace {

constexpr double kRotaryBase = 10'000;  // Gemma's

}  // namespace

Visibility visibility(const at::Tensor& valid, const at::Tensor& opens) {
  const auto block = opens.cumsum(0);
  const auto sees_block = block.unsqueeze(0).le(block.unsqueeze(1));
  const auto both_valid = valid.unsqueeze(1).logical_and(valid.unsqueeze(2));
  const auto itself = torch::eye(valid.size(1), valid.options());
  return {.visible = sees_block.logical_and(both_valid).logical_or(itself).unsqueeze(1),
          .positions = valid.to(at::kLong).cumsum(1) - 1};
}

Visibility pi0_visibility(const Pi0Config& config, const at::Tensor& image_mask,
                          const at::Tensor& token_mask) {
  const auto of_images = image_mask.repeat_interleave(config.vision.tokens_of_image(), /*dim=*/1);
  const auto of_suffix =
      torch::ones({image_mask.size(0), config.suffix_tokens()}, image_mask.options());
  auto opens = torch::zeros({config.prefix_tokens() + config.suffix_tokens()}, at::kLong);
  opens[config.prefix_tokens()] = 1;
  if (!config.is_pi05()) opens[config.prefix_tokens() + 1] = 1;  // behind the state
  return visibility(at::cat({of_images, token_mask, of_suffix}, 1), opens.to(image_mask.device()));
}

Rotation rotation_of(const at::Tensor& positions, std::int64_t head_width) {
  const auto options = positions.options().dtype(at::kFloat);
  const auto exponent = torch::arange(0, head_width, 2, options) / static_cast<double>(head_width);
  const auto frequency = at::pow(kRotaryBase, exponent).reciprocal();
  const auto angle = (positions.to(at::kFloat).unsqueeze(2) * frequency).unsqueeze(1);
  return {.cosine = angle.cos(), .sine = angle.sin()};
}

at::Tensor rotated(const at::Tensor& x, const Rotation& rotation) {
  return rotated(x, rotation.cosine, rotation.sine);
}

}  // namespace tj::trainer
