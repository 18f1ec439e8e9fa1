#include "trainer/workloads/pi0/pi0_config.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "contract/result.h"
#include "trainer/workload/tensor_specs.h"

namespace tj::trainer {
namespace {

// Batch, rate and steps: openpi's and LeRobot's defaults. The small ones are for tests and for a
// look.
constexpr Preset kPresets[] = {
    {.name = "pi0", .steps = 30'000, .batch_size = 32, .lr = 2.5e-5},
    {.name = "pi05", .steps = 30'000, .batch_size = 32, .lr = 2.5e-5},
    {.name = "pi0-dummy", .steps = 1000, .batch_size = 32, .lr = 1e-3},
    {.name = "pi05-dummy", .steps = 1000, .batch_size = 32, .lr = 1e-3},
    {.name = "pi0-nano", .steps = 1000, .batch_size = 32, .lr = 1e-3},
    {.name = "pi05-nano", .steps = 1000, .batch_size = 32, .lr = 1e-3},
};

constexpr std::int64_t kPi05PromptTokens = 200;
constexpr std::int64_t kNanoPi05PromptTokens = 32;

/// openpi's towers of this name, with the smallest SigLIP of big_vision (mu).
void make_dummy(Pi0Config& config) {
  config.vision.layers = 1;
  config.vision.heads = 2;
  config.vision.width = 32;
  config.vision.hidden = 128;
  config.layers = 4;
  config.head_width = 16;
  config.prefix = config.expert = {.width = 64, .hidden = 128};
}

void make_nano(Pi0Config& config) {
  config.vision = {
      .image_side = 56, .patch_side = 7, .layers = 2, .heads = 4, .width = 64, .hidden = 128};
  config.layers = 3;
  config.heads = 4;
  config.head_width = 16;
  config.prefix = {.width = 64, .hidden = 128};
  config.expert = {.width = 48, .hidden = 96};
  config.vocabulary = 1024;
  config.cameras = {"base_0_rgb", "wrist_0_rgb"};
  config.prompt_tokens = config.is_pi05() ? kNanoPi05PromptTokens : 16;
  config.horizon = 8;
  config.state_width = config.action_width = config.actions_counted = 8;
}

const std::string kVlm = "paligemma_with_expert.paligemma.model.";
const std::string kExpert = "paligemma_with_expert.gemma_expert.model.";

void add_vision_layer(TensorSpecs& specs, const std::string& prefix, const Pi0Vision& vision) {
  specs.layer_norm(prefix + "layer_norm1", vision.width);
  for (const char* const name : {"q_proj", "k_proj", "v_proj", "out_proj"})
    specs.linear(prefix + "self_attn." + name, vision.width, vision.width);
  specs.layer_norm(prefix + "layer_norm2", vision.width);
  specs.linear(prefix + "mlp.fc1", vision.hidden, vision.width);
  specs.linear(prefix + "mlp.fc2", vision.width, vision.hidden);
}

void add_vision(TensorSpecs& specs, const Pi0Config& config, Pi0Tensors& tensors) {
  const auto& vision = config.vision;
  const std::string tower = kVlm + "vision_tower.vision_model.";
  const auto values_of_patch = kPi0ImageChannels * vision.patch_side * vision.patch_side;
  tensors.patches = specs.next();
  specs.add(tower + "embeddings.patch_embedding.weight",
            {vision.width, kPi0ImageChannels, vision.patch_side, vision.patch_side},
            TensorSpecs::of_inputs(values_of_patch));
  specs.add(tower + "embeddings.patch_embedding.bias", {vision.width});
  specs.table(tower + "embeddings.position_embedding", vision.tokens_of_image(), vision.width);
  for (std::int64_t layer = 0; layer < vision.layers; ++layer) {
    tensors.vision_layers.push_back(specs.next());
    add_vision_layer(specs, tower + "encoder.layers." + std::to_string(layer) + ".", vision);
  }
  tensors.projector = specs.next();
  specs.layer_norm(tower + "post_layernorm", vision.width);
  specs.linear(kVlm + "multi_modal_projector.linear", config.prefix.width, vision.width);
}

void add_suffix(TensorSpecs& specs, const Pi0Config& config, Pi0Tensors& tensors) {
  const auto width = config.expert.width;
  tensors.suffix = specs.next();
  if (!config.is_pi05()) specs.linear("state_proj", width, config.state_width);
  specs.linear("action_in_proj", width, config.action_width);
  const std::string time = config.is_pi05() ? "time_mlp_" : "action_time_mlp_";
  specs.linear(time + "in", width, config.is_pi05() ? width : 2 * width);
  specs.linear(time + "out", width, width);
}

/// The scale is 1 + weight; of adaRMS scale, shift and gate are made of the time. Both begin with
/// zeros: so do the branches of an adaptive layer.
void add_norm(TensorSpecs& specs, const std::string& name, std::int64_t width, bool is_adaptive) {
  if (!is_adaptive) {
    specs.add(name + ".weight", {width});
    return;
  }
  specs.add(name + ".dense.weight", {3 * width, width});
  specs.add(name + ".dense.bias", {3 * width});
}

void add_gemma_layer(TensorSpecs& specs, const std::string& prefix, const Pi0Config& config,
                     const Pi0Tower& tower, bool is_adaptive) {
  const auto width = tower.width;
  const auto heads_width = config.heads * config.head_width;
  add_norm(specs, prefix + "input_layernorm", width, is_adaptive);
  specs.weight(prefix + "self_attn.q_proj", heads_width, width);
  specs.weight(prefix + "self_attn.k_proj", config.head_width, width);
  specs.weight(prefix + "self_attn.v_proj", config.head_width, width);
  specs.weight(prefix + "self_attn.o_proj", width, heads_width);
  add_norm(specs, prefix + "post_attention_layernorm", width, is_adaptive);
  specs.weight(prefix + "mlp.gate_proj", tower.hidden, width);
  specs.weight(prefix + "mlp.up_proj", tower.hidden, width);
  specs.weight(prefix + "mlp.down_proj", width, tower.hidden);
}

void add_layers(TensorSpecs& specs, const Pi0Config& config, Pi0Tensors& tensors) {
  constexpr std::size_t kQueries = 1, kAfterValues = 4;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string number = "layers." + std::to_string(layer) + ".";
    Pi0Tensors::Layer places{.prefix = specs.next()};
    add_gemma_layer(specs, kVlm + "language_model." + number, config, config.prefix, false);
    if (layer + 1 == config.layers) {
      specs.freeze(places.prefix + kQueries);
      specs.freeze_from(places.prefix + kAfterValues);
    }
    places.expert = specs.next();
    add_gemma_layer(specs, kExpert + number, config, config.expert, config.is_pi05());
    tensors.layers.push_back(places);
  }
}

void add_head(TensorSpecs& specs, const Pi0Config& config, Pi0Tensors& tensors) {
  tensors.head = specs.next();
  add_norm(specs, kVlm + "language_model.norm", config.prefix.width, false);
  specs.freeze_from(tensors.head);
  add_norm(specs, kExpert + "norm", config.expert.width, config.is_pi05());
  specs.linear("action_out_proj", config.action_width, config.expert.width);
}

/// A block from each of `begins` to the next.
std::vector<ModelBlock> blocks_from(const std::vector<std::size_t>& begins, std::size_t end) {
  std::vector<ModelBlock> blocks;
  for (std::size_t block = 0; block < begins.size(); ++block) {
    const auto last = block + 1 < begins.size() ? begins[block + 1] : end;
    blocks.emplace_back();
    for (auto index = begins[block]; index < last; ++index) blocks.back().tensors.push_back(index);
  }
  return blocks;
}

std::vector<ModelBlock> blocks_of(const Pi0Tensors& tensors) {
  std::vector<std::size_t> begins{tensors.patches};
  begins.insert(begins.end(), tensors.vision_layers.begin(), tensors.vision_layers.end());
  for (const auto first : {tensors.projector, tensors.words, tensors.suffix})
    begins.push_back(first);
  for (const auto& layer : tensors.layers) begins.push_back(layer.prefix);
  begins.push_back(tensors.head);
  auto blocks = blocks_from(begins, tensors.specs.size());
  // The gradient of an embedding needs the tokens alone, that of the patches the images.
  blocks.front().reads_in_backward = false;
  blocks[tensors.vision_layers.size() + 2].reads_in_backward = false;
  return blocks;
}

/// 2 x tokens x elements of a matrix, and the two products of attention.
double flops_of_layer(double tokens, double matrices, double keys, double heads_width) {
  return 2 * tokens * matrices + 4 * tokens * keys * heads_width;
}

}  // namespace

Pi0Tensors pi0_tensors(const Pi0Config& config) {
  Pi0Tensors tensors;
  TensorSpecs specs(tensors.specs);
  add_vision(specs, config, tensors);
  tensors.words = specs.next();
  specs.table(kVlm + "language_model.embed_tokens", config.vocabulary, config.prefix.width);
  add_suffix(specs, config, tensors);
  add_layers(specs, config, tensors);
  add_head(specs, config, tensors);
  tensors.blocks = blocks_of(tensors);
  return tensors;
}

std::int64_t parameter_count(const Pi0Config& config) {
  std::int64_t total = 0;
  for (const auto& tensor : pi0_tensors(config).specs) total += element_count(tensor);
  return total;
}

double pi0_flops_of_sample(const Pi0Config& config) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const auto& vision = config.vision;
  const double patches = real(vision.tokens_of_image());
  const double images = real(static_cast<std::int64_t>(config.cameras.size()));
  const double vision_width = real(vision.width);
  const double of_image =
      real(vision.layers) *
          flops_of_layer(patches, vision_width * (4 * vision_width + 2 * real(vision.hidden)),
                         patches, vision_width) +
      2 * patches * vision_width *
          real(kPi0ImageChannels * vision.patch_side * vision.patch_side + config.prefix.width);
  const double heads_width = real(config.heads * config.head_width);
  const auto matrices = [&](const Pi0Tower& tower) {
    return real(tower.width) *
           (2 * heads_width + 2 * real(config.head_width) + 3 * real(tower.hidden));
  };
  const double prefix = real(config.prefix_tokens()), suffix = real(config.suffix_tokens());
  const double of_prefix = flops_of_layer(prefix, matrices(config.prefix), prefix, heads_width);
  const double of_suffix =
      flops_of_layer(suffix, matrices(config.expert), prefix + suffix, heads_width);
  // The last layer of the prefix makes keys and values alone.
  const double keys_and_values = 4 * prefix * real(config.prefix.width) * real(config.head_width);
  return images * of_image + real(config.layers - 1) * of_prefix + keys_and_values +
         real(config.layers) * of_suffix;
}

std::span<const Preset> pi0_presets() { return kPresets; }

Pi0Config pi0_model(const Preset& preset) {
  const auto found = std::ranges::find(kPresets, preset.name, &Preset::name);
  TJ_CHECK(found != std::end(kPresets), "a preset of this workload");
  Pi0Config config;
  if (preset.name.starts_with("pi05")) {
    config.kind = Pi0Config::Kind::pi05;
    config.prompt_tokens = kPi05PromptTokens;
  }
  if (preset.name.ends_with("-dummy")) make_dummy(config);
  if (preset.name.ends_with("-nano")) make_nano(config);
  return config;
}

ModelShape pi0_shape(const Pi0Config& config) {
  static constexpr const char* kKinds[] = {"pi0", "pi05"};
  const auto& vision = config.vision;
  return {{"kind", "--model", static_cast<std::int64_t>(config.kind), kKinds},
          {"image_side", "--image-size", vision.image_side},
          {"patch_side", "--model", vision.patch_side},
          {"vision_layers", "--model", vision.layers},
          {"vision_heads", "--model", vision.heads},
          {"vision_width", "--model", vision.width},
          {"vision_hidden", "--model", vision.hidden},
          {"layers", "--model", config.layers},
          {"heads", "--model", config.heads},
          {"head_width", "--model", config.head_width},
          {"prefix_width", "--model", config.prefix.width},
          {"prefix_hidden", "--model", config.prefix.hidden},
          {"expert_width", "--model", config.expert.width},
          {"expert_hidden", "--model", config.expert.hidden},
          {"vocabulary", "--vocabulary", config.vocabulary},
          {"cameras", "--cameras", static_cast<std::int64_t>(config.cameras.size())},
          {"prompt_tokens", "--prompt-tokens", config.prompt_tokens},
          {"horizon", "--horizon", config.horizon},
          {"state_width", "--action-dim", config.state_width},
          {"action_width", "--action-dim", config.action_width}};
}

}  // namespace tj::trainer
