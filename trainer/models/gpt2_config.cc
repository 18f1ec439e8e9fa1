#include "trainer/models/gpt2_config.h"

#include <algorithm>

namespace tj::trainer {
namespace {

constexpr Gpt2Preset kPresets[] = {
    {.name = "gpt2-nano",
     .model = {.layers = 4, .heads = 4, .width = 128, .context = 64},
     .steps = 300,
     .batch_size = 32,
     .lr = 3e-3},
    {.name = "gpt2-tiny",
     .model = {.layers = 8, .heads = 8, .width = 512, .context = 512},
     .steps = 1000,
     .batch_size = 32,
     .lr = 1e-3},
    {.name = "gpt2-small",
     .model = {.layers = 12, .heads = 12, .width = 768, .context = 1024},
     .steps = 1000,
     .batch_size = 32,
     .lr = 6e-4},  // nanoGPT: train.py
};

void append_layer(std::vector<TensorSpec>& tensors, const std::string& prefix, std::int64_t width) {
  using enum TensorRole;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, TensorRole role) {
    tensors.push_back({prefix + name, std::move(shape), role});
  };
  add("ln_1.weight", {width}, norm_weight);
  add("ln_1.bias", {width}, bias);
  add("attn.c_attn.weight", {width, 3 * width}, matrix);
  add("attn.c_attn.bias", {3 * width}, bias);
  add("attn.c_proj.weight", {width, width}, residual_matrix);
  add("attn.c_proj.bias", {width}, bias);
  add("ln_2.weight", {width}, norm_weight);
  add("ln_2.bias", {width}, bias);
  add("mlp.c_fc.weight", {width, 4 * width}, matrix);
  add("mlp.c_fc.bias", {4 * width}, bias);
  add("mlp.c_proj.weight", {4 * width, width}, residual_matrix);
  add("mlp.c_proj.bias", {width}, bias);
}

}  // namespace

std::span<const Gpt2Preset> gpt2_presets() { return kPresets; }

std::optional<Gpt2Preset> find_gpt2_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Gpt2Preset::name);
  if (found == std::end(kPresets)) return std::nullopt;
  return *found;
}

std::vector<TensorSpec> gpt2_tensors(const Gpt2Config& config) {
  using enum TensorRole;
  std::vector<TensorSpec> tensors;
  tensors.push_back({"transformer.wte.weight", {config.vocabulary, config.width}, embedding});
  tensors.push_back({"transformer.wpe.weight", {config.context, config.width}, embedding});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    append_layer(tensors, "transformer.h." + std::to_string(layer) + ".", config.width);
  }
  tensors.push_back({"transformer.ln_f.weight", {config.width}, norm_weight});
  tensors.push_back({"transformer.ln_f.bias", {config.width}, bias});
  return tensors;
}

std::vector<ModelBlock> gpt2_blocks(const Gpt2Config& config) {
  std::vector<ModelBlock> blocks{{.tensors = {0, 1}, .reads_in_backward = false}};
  std::size_t next = kTensorsBeforeLayers;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    ModelBlock block;
    for (std::size_t index = 0; index < kTensorsOfLayer; ++index) block.tensors.push_back(next++);
    blocks.push_back(std::move(block));
  }
  blocks.push_back({.tensors = {next, next + 1, 0}});
  return blocks;
}

std::int64_t parameter_count(const Gpt2Config& config) {
  std::int64_t total = 0;
  for (const auto& tensor : gpt2_tensors(config)) {
    std::int64_t size = 1;
    for (const auto extent : tensor.shape) size *= extent;
    total += size;
  }
  return total;
}

}  // namespace tj::trainer
