// Shapes: B scenes, S frames of each, T tokens of a frame, C the width.
#include "trainer/workloads/qwen_vggt/vggt.h"

#include <torch/types.h>

#include <utility>

#include "contract/result.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/qwen_vggt/vggt_layer.h"

namespace tj::trainer {
namespace {

constexpr double kDinoNormEps = 1e-6;
// Of ImageNet.
constexpr float kMean[] = {0.485F, 0.456F, 0.406F};
constexpr float kDeviation[] = {0.229F, 0.224F, 0.225F};

// Places of what stands before DINO's layers.
constexpr std::size_t kClass = 0, kPositions = 1, kRegisters = 2, kPatchWeight = 3, kPatchBias = 4;

at::Tensor by_colour(const float (&values)[3], at::Device device) {
  return torch::tensor(at::ArrayRef<float>(values, 3)).view({3, 1, 1}).to(device);
}

/// Of a product of matrices: images [N, 3, height, width] -> [N, patches by rows, values].
at::Tensor patch_values(const at::Tensor& images, std::int64_t side) {
  const auto rows = images.size(2) / side, columns = images.size(3) / side;
  return images.reshape({images.size(0), images.size(1), rows, side, columns, side})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({images.size(0), rows * columns, images.size(1) * side * side});
}

/// int64 [T, 2]: patches from 1 on, what stands before them at 0. Made on the device: a copy to it
/// would wait for all that the stream has.
at::Tensor token_places(std::int64_t special, std::int64_t rows, std::int64_t columns,
                        at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const auto patches = torch::cartesian_prod(
      {torch::arange(1, rows + 1, options), torch::arange(1, columns + 1, options)});
  return at::cat({torch::zeros({special, 2}, options), patches});
}

}  // namespace

/// Of one size and number: x and of_frame [B x S, T, C].
struct Vggt::Walked {
  at::Tensor x, of_frame;
  VggtLayerRule in_frame, over_all;
  std::int64_t scene_count = 0;
};

Vggt::Vggt(std::vector<at::Tensor> weights, const VggtConfig& config, const ModelOptions& options,
           Communicator* ranks)
    : Vggt([&](std::size_t index) { return std::move(weights.at(index)); }, config, options,
           ranks) {
  TJ_CHECK(weights.size() == layout_.specs.size(), "all tensors of the model");
}

Vggt::Vggt(const WeightAt& weight, const VggtConfig& config, const ModelOptions& options,
           Communicator* ranks)
    : config_(config),
      options_(options),
      layout_(vggt_tensors(config)),
      mean_(by_colour(kMean, device())),
      deviation_(by_colour(kDeviation, device())),
      weights_(take_others(weight)),
      layers_(take_layers(weight, ranks)) {}

at::Device Vggt::device() const { return device_of(options_.gpu); }

/// First tensors of the layers, in the order in which they are walked through, and how many.
std::vector<Vggt::LayerPlace> Vggt::layer_places() const {
  std::vector<LayerPlace> places;
  for (const auto first : layout_.dino_layers) places.emplace_back(first, kTensorsOfDinoLayer);
  for (std::size_t layer = 0; layer < layout_.frame_layers.size(); ++layer) {
    places.emplace_back(layout_.frame_layers[layer], kTensorsOfVggtLayer);
    places.emplace_back(layout_.global_layers[layer], kTensorsOfVggtLayer);
  }
  return places;
}

FrozenLayers Vggt::take_layers(const WeightAt& weight, Communicator* ranks) const {
  const auto places = layer_places();
  const auto whole = [&](std::size_t layer) {
    const auto [first, count] = places[layer];
    FrozenLayers::Layer tensors;
    for (std::size_t i = 0; i < count; ++i) tensors.push_back(weight(first + i));
    return tensors;
  };
  if (ranks != nullptr) return {places.size(), whole, *ranks, device()};
  std::vector<FrozenLayers::Layer> layers;
  for (std::size_t layer = 0; layer < places.size(); ++layer) layers.push_back(whole(layer));
  return FrozenLayers(std::move(layers));
}

/// Those of no layer, on the device; the others' places are empty.
std::vector<at::Tensor> Vggt::take_others(const WeightAt& weight) const {
  std::vector<bool> is_of_layer(layout_.specs.size());
  for (const auto& [first, count] : layer_places())
    for (auto index = first; index < first + count; ++index) is_of_layer[index] = true;
  std::vector<at::Tensor> others(layout_.specs.size());
  for (std::size_t index = 0; index < others.size(); ++index)
    if (!is_of_layer[index]) others[index] = weight(index).to(device());
  return others;
}

std::int64_t Vggt::held_bytes() const {
  auto bytes = layers_.held_bytes();
  for (const auto& weight : weights_)
    if (weight.defined()) bytes += static_cast<std::int64_t>(weight.nbytes());
  return bytes;
}

at::TensorList Vggt::part(std::size_t first, std::size_t count) const {
  return at::TensorList(weights_).slice(first, count);
}

/// float32 [1, 1 + patches, C]: the square's own, or resized to another grid.
at::Tensor Vggt::positions(std::int64_t rows, std::int64_t columns) const {
  const auto all = weights_[layout_.patches + kPositions].to(at::kFloat);
  const auto side = config_.positions_side;
  if (rows == side && columns == side) return all;
  const auto plane = all.narrow(1, 1, side * side).view({1, side, side, -1}).permute({0, 3, 1, 2});
  const auto resized = at::_upsample_bicubic2d_aa(plane, {rows, columns}, /*align_corners=*/false);
  return at::cat({all.narrow(1, 0, 1), resized.permute({0, 2, 3, 1}).flatten(1, 2)}, 1);
}

/// frames [N, 3, height, width] -> [N, T, C], as DINO's first layer gets them.
at::Tensor Vggt::embedded(const at::Tensor& frames) const {
  const auto images = (frames - mean_) / deviation_;
  const auto before = part(layout_.patches, kPatchBias + 1);
  const auto count = images.size(0), side = config_.patch_side;
  const auto weight = before[kPatchWeight].flatten(1);
  const auto values = at::linear(patch_values(images, side), weight, before[kPatchBias]);
  const auto one_for_each = [&](const at::Tensor& token) {
    return token.to(at::kFloat).expand({count, -1, -1});
  };
  const auto placed = at::cat({one_for_each(before[kClass]), values.to(at::kFloat)}, 1) +
                      positions(images.size(2) / side, images.size(3) / side);
  return at::cat({placed.narrow(1, 0, 1), one_for_each(before[kRegisters]),
                  placed.narrow(1, 1, placed.size(1) - 1)},
                 1);
}

/// What DINO says of patches alone.
at::Tensor Vggt::without_special(const at::Tensor& x) const {
  const auto norm = part(layout_.dino_norm, 2);
  const auto special = 1 + config_.registers;
  return at::layer_norm(x.narrow(1, special, x.size(1) - special), {x.size(2)},
                        norm[0].to(at::kFloat), norm[1].to(at::kFloat), kDinoNormEps);
}

/// Layer by layer, whose weights may come and go, and in each image by image: what is made of one
/// depends on no other.
std::vector<at::Tensor> Vggt::patches(std::span<const at::Tensor> images) const {
  const at::NoGradGuard no_gradients;
  const Autocast autocast(options_.precision, device().type());
  std::vector<at::Tensor> made;
  for (const auto& frames : images) made.push_back(embedded(frames));
  const VggtLayerRule rule{.heads = config_.heads, .norm_eps = kDinoNormEps};
  layers_.walk(0, layout_.dino_layers.size(), [&](std::size_t, at::TensorList tensors) {
    for (auto& x : made) x = vggt_layer(x, tensors, rule);
  });
  for (auto& x : made) x = without_special(x);
  return made;
}

/// patches [B x S, patches, C] -> [B x S, T, C]: the first frame of a scene has its own camera and
/// registers, all others share theirs.
at::Tensor Vggt::with_special(const at::Tensor& patches, std::int64_t frame_count) const {
  const auto special = part(layout_.special, 2);
  const auto both = at::cat({special[0], special[1]}, 2).to(at::kFloat);  // [1, 2, special, C]
  const auto first = both.narrow(1, 0, 1), others = both.narrow(1, 1, 1);
  const auto of_scene =
      at::cat({first, others.expand({-1, frame_count - 1, -1, -1})}, 1).squeeze(0);
  const auto scenes = patches.size(0) / frame_count;
  return at::cat({of_scene.repeat({scenes, 1, 1}), patches}, 1);
}

Vggt::Walked Vggt::begun(const VggtScenes& scenes, FrameSight sight) const {
  const auto& patches = scenes.patches;
  const auto frame_count = patches.size(1);
  auto x = with_special(patches.flatten(0, 1), frame_count);
  const auto tokens_of_frame = x.size(1);
  const auto places = token_places(config_.special_tokens(), scenes.rows,
                                   patches.size(2) / scenes.rows, patches.device());
  return {.x = std::move(x),
          .of_frame = {},
          .in_frame = {.heads = config_.heads, .turns = vggt_turns(places, config_.head_width())},
          .over_all = {.heads = config_.heads,
                       .turns = vggt_turns(places.repeat({frame_count, 1}), config_.head_width()),
                       .tokens_of_frame = sight == FrameSight::earlier ? tokens_of_frame : 0},
          .scene_count = patches.size(0)};
}

/// As tokens(), of each.
std::vector<at::Tensor> Vggt::tokens_of(std::span<const VggtScenes> scenes, FrameSight sight,
                                        std::int64_t layers) const {
  TJ_CHECK(layers >= 1 && layers <= config_.layers, "layers of this model");
  const at::NoGradGuard no_gradients;
  const Autocast autocast(options_.precision, device().type());
  std::vector<Walked> all;
  for (const auto& alike : scenes) all.push_back(begun(alike, sight));
  const auto first = layout_.dino_layers.size();
  const auto end = first + 2 * static_cast<std::size_t>(layers);
  layers_.walk(first, end, [&](std::size_t layer, at::TensorList tensors) {
    const bool is_in_frame = (layer - first) % 2 == 0;
    for (auto& [x, of_frame, in_frame, over_all, scene_count] : all) {
      if (is_in_frame) {
        of_frame = vggt_layer(x, tensors, in_frame);
      } else {
        const auto joined = of_frame.view({scene_count, -1, of_frame.size(2)});
        x = vggt_layer(joined, tensors, over_all).view(of_frame.sizes());
      }
    }
  });
  std::vector<at::Tensor> made;
  for (const auto& walked : all)
    made.push_back(at::cat({walked.of_frame, walked.x}, -1).unflatten(0, {walked.scene_count, -1}));
  return made;
}

at::Tensor Vggt::tokens(const at::Tensor& frames, FrameSight sight, std::int64_t layers) const {
  const auto flat = frames.flatten(0, 1);
  const auto of_frames = patches({&flat, 1}).front().unflatten(0, {frames.size(0), -1});
  const VggtScenes scenes{.patches = of_frames, .rows = frames.size(3) / config_.patch_side};
  return tokens_of({&scenes, 1}, sight, layers).front();
}

/// Copied, so that the tokens of all other frames may go.
std::vector<at::Tensor> Vggt::newest_of(std::span<const VggtScenes> scenes,
                                        FrameSight sight) const {
  const auto special = config_.special_tokens();
  std::vector<at::Tensor> made;
  for (const auto& all : tokens_of(scenes, sight, config_.layers - 1))
    made.push_back(
        all.select(1, all.size(1) - 1).narrow(1, special, all.size(2) - special).clone());
  return made;
}

at::Tensor Vggt::newest(const at::Tensor& frames, FrameSight sight) const {
  const auto flat = frames.flatten(0, 1);
  const auto of_frames = patches({&flat, 1}).front().unflatten(0, {frames.size(0), -1});
  const VggtScenes scenes{.patches = of_frames, .rows = frames.size(3) / config_.patch_side};
  return newest_of({&scenes, 1}, sight).front();
}

}  // namespace tj::trainer
