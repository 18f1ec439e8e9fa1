#include "trainer/workloads/qwen_vggt/vggt_config.h"

#include <utility>

#include "trainer/workload/tensor_specs.h"
#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kExtentMax = 100'000;
constexpr std::int64_t kLayersMax = 1000;
constexpr double kTokenSpread = 1e-6;  // of tokens that stand before the patches
constexpr double kLayerScale = 0.01;   // with which an aggregator's branch begins
constexpr double kPositionSpread = 0.02;

struct LayerKind {
  bool has_norms = false;  // of queries and keys
  double scale = 1;
};

void add_scale(TensorSpecs& specs, const std::string& name, std::int64_t width, double begin) {
  specs.add(name + ".gamma", {width}, {.kind = TensorInit::Kind::constant, .scale = begin});
}

void add_layer(TensorSpecs& specs, const std::string& prefix, const VggtConfig& config,
               const LayerKind& kind) {
  const auto width = config.width;
  specs.layer_norm(prefix + "norm1", width);
  specs.linear(prefix + "attn.qkv", 3 * width, width);
  if (kind.has_norms) {
    specs.layer_norm(prefix + "attn.q_norm", config.head_width());
    specs.layer_norm(prefix + "attn.k_norm", config.head_width());
  }
  specs.linear(prefix + "attn.proj", width, width);
  add_scale(specs, prefix + "ls1", width, kind.scale);
  specs.layer_norm(prefix + "norm2", width);
  specs.linear(prefix + "mlp.fc1", config.hidden, width);
  specs.linear(prefix + "mlp.fc2", width, config.hidden);
  add_scale(specs, prefix + "ls2", width, kind.scale);
}

void add_dino(TensorSpecs& specs, const VggtConfig& config, VggtTensors& tensors) {
  const std::string prefix = "aggregator.patch_embed.";
  const auto width = config.width, side = config.patch_side;
  const auto positions = 1 + config.positions_side * config.positions_side;
  tensors.patches = specs.next();
  specs.add(prefix + "cls_token", {1, 1, width}, TensorSpecs::random(kTokenSpread));
  specs.add(prefix + "pos_embed", {1, positions, width}, TensorSpecs::random(kPositionSpread));
  specs.add(prefix + "register_tokens", {1, config.registers, width},
            TensorSpecs::random(kTokenSpread));
  specs.add(prefix + "patch_embed.proj.weight", {width, kColours, side, side},
            TensorSpecs::of_inputs(kColours * side * side));
  specs.add(prefix + "patch_embed.proj.bias", {width});
  for (std::int64_t layer = 0; layer < config.dino_layers; ++layer) {
    tensors.dino_layers.push_back(specs.next());
    add_layer(specs, prefix + "blocks." + std::to_string(layer) + ".", config, {});
  }
  tensors.dino_norm = specs.next();
  specs.layer_norm(prefix + "norm", width);
}

}  // namespace

std::string vggt_flaw(const VggtConfig& config) {
  const std::pair<const char*, std::int64_t> extents[] = {
      {"the width", config.width},
      {"the width of the MLPs", config.hidden},
      {"the number of heads", config.heads},
      {"the number of layers", config.layers},
      {"the number of layers of DINOv2", config.dino_layers},
      {"the side of a patch", config.patch_side},
      {"the side of the positions", config.positions_side},
      {"the number of registers", config.registers}};
  for (const auto& [name, value] : extents)
    if (value < 1 || value > kExtentMax)
      return std::string(name) + " is " + std::to_string(value) + "; it must be from 1 to " +
             std::to_string(kExtentMax);
  if (config.layers < 2 || config.layers > kLayersMax || config.dino_layers > kLayersMax)
    return "it has " + std::to_string(config.layers) + " layers; it must have from 2 to " +
           std::to_string(kLayersMax);
  if (config.width % config.heads != 0) return "its heads don't divide its width";
  if (config.head_width() % 4 != 0) return "the width of a head must be a multiple of 4";
  return "";
}

VggtTensors vggt_tensors(const VggtConfig& config) {
  VggtTensors tensors;
  TensorSpecs specs(tensors.specs, TensorKind::frozen);
  add_dino(specs, config, tensors);
  tensors.special = specs.next();
  specs.add("aggregator.camera_token", {1, 2, 1, config.width}, TensorSpecs::random(kTokenSpread));
  specs.add("aggregator.register_token", {1, 2, config.registers, config.width},
            TensorSpecs::random(kTokenSpread));
  const LayerKind kind{.has_norms = true, .scale = kLayerScale};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const auto number = std::to_string(layer) + ".";
    tensors.frame_layers.push_back(specs.next());
    add_layer(specs, "aggregator.frame_blocks." + number, config, kind);
    tensors.global_layers.push_back(specs.next());
    add_layer(specs, "aggregator.global_blocks." + number, config, kind);
  }
  return tensors;
}

}  // namespace tj::trainer
