#include "trainer/workloads/gpt2/gpt2_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "contract/result.h"

namespace tj::trainer {
namespace {

// Rates from small on: Brown et al. 2020 (GPT-3), table 2.1, for models of these sizes; nanoGPT's
// train.py has the same for small. Their batches have half a million tokens and more; these fit one
// device in a pass, and --batch-size with --accumulation makes them larger.
constexpr Preset kPresets[] = {
    {.name = "gpt2-nano", .steps = 300, .batch_size = 32, .lr = 3e-3},
    {.name = "gpt2-tiny", .steps = 1000, .batch_size = 32, .lr = 1e-3},
    {.name = "gpt2-tiny-zh", .steps = 1000, .batch_size = 32, .lr = 1e-3},
    {.name = "gpt2-small", .steps = 1000, .batch_size = 32, .lr = 6e-4},
    {.name = "gpt2-medium", .steps = 1000, .batch_size = 16, .lr = 3e-4},
    {.name = "gpt2-large", .steps = 1000, .batch_size = 16, .lr = 2.5e-4},
    {.name = "gpt2-xl", .steps = 1000, .batch_size = 8, .lr = 2e-4},
};
constexpr Gpt2Config kModels[] = {
    {.layers = 4, .heads = 4, .width = 128, .context = 64},
    {.layers = 8, .heads = 8, .width = 512, .context = 512},
    {.layers = 12, .heads = 8, .width = 512, .context = 512},
    {.layers = 12, .heads = 12, .width = 768, .context = 1024},
    {.layers = 24, .heads = 16, .width = 1024, .context = 1024},
    {.layers = 36, .heads = 20, .width = 1280, .context = 1024},
    {.layers = 48, .heads = 25, .width = 1600, .context = 1024},
};
static_assert(std::size(kPresets) == std::size(kModels));

// Radford et al. 2019, section 2.3.
constexpr double kInitStd = 0.02;
constexpr TensorInit kOnes{.kind = TensorInit::Kind::ones};
constexpr TensorInit kZeros{};
constexpr TensorInit kNormal{.kind = TensorInit::Kind::normal, .scale = kInitStd};

void append_layer(std::vector<TensorSpec>& tensors, const std::string& prefix,
                  const Gpt2Config& config) {
  const auto width = config.width;
  // Each layer adds twice to the residual stream: its sum keeps its scale.
  const TensorInit residual{
      .kind = TensorInit::Kind::normal,
      .scale = kInitStd / std::sqrt(2.0 * static_cast<double>(config.layers))};
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, TensorInit init) {
    tensors.push_back({.name = prefix + name,
                       .shape = std::move(shape),
                       .init = init,
                       .layout = MatrixLayout::inputs_outputs});
  };
  add("ln_1.weight", {width}, kOnes);
  add("ln_1.bias", {width}, kZeros);
  add("attn.c_attn.weight", {width, 3 * width}, kNormal);
  add("attn.c_attn.bias", {3 * width}, kZeros);
  add("attn.c_proj.weight", {width, width}, residual);
  add("attn.c_proj.bias", {width}, kZeros);
  add("ln_2.weight", {width}, kOnes);
  add("ln_2.bias", {width}, kZeros);
  add("mlp.c_fc.weight", {width, 4 * width}, kNormal);
  add("mlp.c_fc.bias", {4 * width}, kZeros);
  add("mlp.c_proj.weight", {4 * width, width}, residual);
  add("mlp.c_proj.bias", {width}, kZeros);
}

}  // namespace

std::optional<Gelu> gelu_from(std::string_view name) {
  for (const auto gelu : {Gelu::tanh, Gelu::erf})
    if (name == to_string(gelu)) return gelu;
  return std::nullopt;
}

std::span<const Preset> gpt2_presets() { return kPresets; }

Gpt2Config gpt2_model(const Preset& preset) {
  const auto found = std::ranges::find(kPresets, preset.name, &Preset::name);
  TJ_CHECK(found != std::end(kPresets), "a preset of this workload");
  return kModels[found - kPresets];
}

std::vector<TensorSpec> gpt2_tensors(const Gpt2Config& config) {
  std::vector<TensorSpec> tensors;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, TensorInit init) {
    tensors.push_back(
        {.name = name, .shape = std::move(shape), .init = init, .layout = MatrixLayout::rows});
  };
  add("transformer.wte.weight", {config.vocabulary, config.width}, kNormal);
  add("transformer.wpe.weight", {config.context, config.width}, kNormal);
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    append_layer(tensors, "transformer.h." + std::to_string(layer) + ".", config);
  add("transformer.ln_f.weight", {config.width}, kOnes);
  add("transformer.ln_f.bias", {config.width}, kZeros);
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
  for (const auto& tensor : gpt2_tensors(config)) total += element_count(tensor);
  return total;
}

}  // namespace tj::trainer
