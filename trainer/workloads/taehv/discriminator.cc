#include "trainer/workloads/taehv/discriminator.h"

#include <torch/types.h>

#include <array>
#include <cmath>

namespace tj::trainer {
namespace {

struct Stage {
  std::int64_t widening;  // times the width of the first one
  std::int64_t stride;
  std::int64_t side() const { return stride == 2 ? 4 : 3; }  // of its kernel
};
constexpr std::array<Stage, kDiscriminatorStages> kShape{
    {{1, 1}, {2, 2}, {4, 2}, {8, 2}, {8, 1}, {8, 1}}};
constexpr std::int64_t kPatch = 8;  // pixels, height and width of what one score is of

/// What a stage has, in this order.
enum Part : std::size_t { kWeight, kScale, kShift, kMean, kVariance, kParts };

// Of torch.nn.BatchNorm2d.
constexpr double kMomentum = 0.1;
constexpr double kEps = 1e-5;

/// As torch.nn.Conv2d begins: uniform within 1 / sqrt(fan in).
TensorInit initial_weight(std::int64_t fan_in) {
  return {.kind = TensorInit::Kind::uniform, .scale = 1 / std::sqrt(static_cast<double>(fan_in))};
}

std::int64_t channels_in(const TaehvConfig& config) {
  return kFramesOfGroup * kImageChannels + config.latent_channels;
}

TensorSpec unpublished(std::string name, std::vector<std::int64_t> shape, const TensorInit& init,
                       TensorKind kind = TensorKind::trained) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .init = init,
          .kind = kind,
          .is_published = false};
}

}  // namespace

std::vector<TensorSpec> discriminator_tensors(const TaehvConfig& config) {
  const TensorInit zeros{}, ones{.kind = TensorInit::Kind::ones};
  std::vector<TensorSpec> tensors;
  std::int64_t in = channels_in(config);
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const auto out = kShape[i].widening * config.encoder_width, side = kShape[i].side();
    const std::string name = "discriminator.blocks." + std::to_string(i);
    tensors.push_back(
        unpublished(name + ".0.weight", {out, in, side, side}, initial_weight(in * side * side)));
    tensors.push_back(unpublished(name + ".1.weight", {out}, ones));
    tensors.push_back(unpublished(name + ".1.bias", {out}, zeros));
    tensors.push_back(unpublished(name + ".1.running_mean", {out}, zeros, TensorKind::buffer));
    tensors.push_back(unpublished(name + ".1.running_var", {out}, ones, TensorKind::buffer));
    in = out;
  }
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const auto width = kShape[i].widening * config.encoder_width;
    tensors.push_back(unpublished("discriminator.proj." + std::to_string(i) + ".weight",
                                  {1, width, 1, 1}, initial_weight(width)));
  }
  return tensors;
}

double flops_of_discriminator(const TaehvConfig& config, std::int64_t height, std::int64_t width) {
  auto in = static_cast<double>(channels_in(config));
  double pixels = static_cast<double>(height * width), flops = 0;
  for (const auto& stage : kShape) {
    const auto out = static_cast<double>(stage.widening * config.encoder_width);
    pixels /= static_cast<double>(stage.stride * stage.stride);
    flops += 2 * pixels * out * (in * static_cast<double>(stage.side() * stage.side()) + 1);
    in = out;
  }
  return flops;
}

at::Tensor Discriminator::scores_in_training(const at::Tensor& groups,
                                             const at::Tensor& context) const {
  return apply(tensors_, groups, context, /*is_training=*/true);
}

at::Tensor Discriminator::scores(const at::Tensor& groups, const at::Tensor& context) const {
  std::vector<at::Tensor> without_gradient;
  for (const auto& tensor : tensors_) without_gradient.push_back(tensor.detach());
  return apply(without_gradient, groups, context, /*is_training=*/false);
}

at::Tensor Discriminator::apply(const std::vector<at::Tensor>& tensors, const at::Tensor& groups,
                                const at::Tensor& context, bool is_training) const {
  const auto height = groups.size(-2), width = groups.size(-1);
  auto x =
      at::cat({groups * 2 - 1, at::upsample_nearest2d(context, at::IntArrayRef{height, width})}, 1);
  std::vector<at::Tensor> scores;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const auto* const part = &tensors[i * kParts];
    x = at::conv2d(x, part[kWeight], {}, kShape[i].stride, /*padding=*/1);
    // In float32: sums over a batch need it.
    x = at::relu(at::batch_norm(x.to(at::kFloat), part[kScale].to(at::kFloat),
                                part[kShift].to(at::kFloat), part[kMean], part[kVariance],
                                is_training, kMomentum, kEps, /*cudnn_enabled=*/true));
    const auto score = at::conv2d(x, tensors[kShape.size() * kParts + i]).to(at::kFloat);
    const auto finer = x.size(-1) * kPatch / width;
    scores.push_back(finer == 1 ? score : at::avg_pool2d(score, at::IntArrayRef{finer, finer}));
  }
  return at::cat(scores, 1);
}

}  // namespace tj::trainer
