#include "trainer/workloads/qwen_vggt/qwen_config.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "contract/result.h"
#include "trainer/workload/tensor_specs.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kExtentMax = 1'000'000;
constexpr std::int64_t kLayersMax = 1000;

QwenConfig published_7b() {
  QwenConfig config;
  config.text.vocabulary = 152'064;
  config.text.width = 3584;
  config.text.hidden = 18'944;
  config.text.layers = 28;
  config.text.heads = 28;
  config.text.key_value_heads = 4;
  config.text.is_tied = false;
  return config;
}

QwenConfig nano() {
  QwenConfig config;
  config.text = {.vocabulary = 512,
                 .width = 64,
                 .hidden = 96,
                 .layers = 2,
                 .heads = 4,
                 .key_value_heads = 2,
                 .mrope_sections = {2, 3, 3}};
  config.vision.width = 32;
  config.vision.hidden = 48;
  config.vision.layers = 2;
  config.vision.heads = 2;
  config.vision.full_layers = {1};
  config.ids = {.begin = 502, .end = 503, .image = 505, .video = 506};
  return config;
}

void add_vision(TensorSpecs& specs, const QwenConfig& config, QwenTensors& tensors) {
  const auto& vision = config.vision;
  tensors.patches = specs.next();
  specs.add("visual.patch_embed.proj.weight",
            {vision.width, kColours, vision.frames_of_patch, vision.patch_side, vision.patch_side},
            TensorSpecs::of_inputs(vision.values_of_patch()));
  for (std::int64_t layer = 0; layer < vision.layers; ++layer) {
    const auto prefix = "visual.blocks." + std::to_string(layer) + ".";
    tensors.vision_layers.push_back(specs.next());
    specs.rms_norm(prefix + "norm1", vision.width);
    specs.linear(prefix + "attn.qkv", 3 * vision.width, vision.width);
    specs.linear(prefix + "attn.proj", vision.width, vision.width);
    specs.rms_norm(prefix + "norm2", vision.width);
    specs.linear(prefix + "mlp.gate_proj", vision.hidden, vision.width);
    specs.linear(prefix + "mlp.up_proj", vision.hidden, vision.width);
    specs.linear(prefix + "mlp.down_proj", vision.width, vision.hidden);
  }
  tensors.merger = specs.next();
  specs.rms_norm("visual.merger.ln_q", vision.width);
  specs.linear("visual.merger.mlp.0", vision.merged_width(), vision.merged_width());
  specs.linear("visual.merger.mlp.2", config.text.width, vision.merged_width());
}

void add_text(TensorSpecs& specs, const QwenText& text, QwenTensors& tensors) {
  tensors.words = specs.next();
  specs.weight("model.embed_tokens", text.vocabulary, text.width);
  const auto key_value_width = text.key_value_heads * text.head_width();
  for (std::int64_t layer = 0; layer < text.layers; ++layer) {
    const auto prefix = "model.layers." + std::to_string(layer) + ".";
    tensors.layers.push_back(specs.next());
    specs.rms_norm(prefix + "input_layernorm", text.width);
    specs.linear(prefix + "self_attn.q_proj", text.width, text.width);
    specs.linear(prefix + "self_attn.k_proj", key_value_width, text.width);
    specs.linear(prefix + "self_attn.v_proj", key_value_width, text.width);
    specs.weight(prefix + "self_attn.o_proj", text.width, text.width);
    specs.rms_norm(prefix + "post_attention_layernorm", text.width);
    specs.weight(prefix + "mlp.gate_proj", text.hidden, text.width);
    specs.weight(prefix + "mlp.up_proj", text.hidden, text.width);
    specs.weight(prefix + "mlp.down_proj", text.width, text.hidden);
  }
  tensors.norm = specs.next();
  specs.rms_norm("model.norm", text.width);
  tensors.head = text.is_tied ? tensors.words : specs.next();
  if (!text.is_tied) specs.weight("lm_head", text.vocabulary, text.width);
}

/// A block from each of the parts to the next; a tied head is in two.
std::vector<ModelBlock> blocks_of(const QwenTensors& tensors) {
  std::vector<std::size_t> begins{tensors.patches};
  begins.insert(begins.end(), tensors.vision_layers.begin(), tensors.vision_layers.end());
  begins.push_back(tensors.merger);
  begins.push_back(tensors.words);
  begins.insert(begins.end(), tensors.layers.begin(), tensors.layers.end());
  begins.push_back(tensors.norm);
  std::vector<ModelBlock> blocks;
  for (std::size_t block = 0; block < begins.size(); ++block) {
    const auto end = block + 1 < begins.size() ? begins[block + 1] : tensors.specs.size();
    blocks.emplace_back();
    for (auto index = begins[block]; index < end; ++index) blocks.back().tensors.push_back(index);
  }
  if (tensors.head == tensors.words) blocks.back().tensors.push_back(tensors.words);
  // The gradient of an embedding needs the tokens alone, that of the patches the pixels.
  blocks.front().reads_in_backward = false;
  blocks[tensors.vision_layers.size() + 2].reads_in_backward = false;
  return blocks;
}

/// Sizes by the names that config.json gives them.
std::vector<std::pair<std::string, std::int64_t>> extents_of(const QwenConfig& config) {
  const auto& text = config.text;
  const auto& vision = config.vision;
  return {{"vocab_size", text.vocabulary},
          {"hidden_size", text.width},
          {"intermediate_size", text.hidden},
          {"num_hidden_layers", text.layers},
          {"num_attention_heads", text.heads},
          {"num_key_value_heads", text.key_value_heads},
          {"max_position_embeddings", text.positions_max},
          {"vision_config.hidden_size", vision.width},
          {"vision_config.intermediate_size", vision.hidden},
          {"vision_config.depth", vision.layers},
          {"vision_config.num_heads", vision.heads},
          {"vision_config.patch_size", vision.patch_side},
          {"vision_config.spatial_merge_size", vision.merge_side},
          {"vision_config.temporal_patch_size", vision.frames_of_patch},
          {"vision_config.window_size", vision.window_pixels},
          {"vision_config.tokens_per_second", vision.positions_of_second}};
}

std::string flaw_of_text(const QwenText& text) {
  if (text.width % text.heads != 0) return "num_attention_heads does not divide hidden_size";
  if (text.heads % text.key_value_heads != 0)
    return "num_key_value_heads does not divide num_attention_heads";
  if (text.head_width() % 2 != 0) return "the width of a head must be even";
  std::int64_t sections = 0;
  for (const auto section : text.mrope_sections) {
    if (section < 0 || section > kExtentMax) return "mrope_section has a number out of its range";
    sections += section;
  }
  if (2 * sections != text.head_width())
    return "mrope_section adds up to " + std::to_string(sections) + "; half of a head is " +
           std::to_string(text.head_width() / 2);
  if (!(text.norm_eps > 0 && text.norm_eps < 1)) return "rms_norm_eps must be between 0 and 1";
  if (!(text.rotary_base > 1 && text.rotary_base < 1e12))
    return "rope_theta must be between 1 and 1e12";
  return "";
}

std::string flaw_of_vision(const QwenVision& vision) {
  if (vision.width % vision.heads != 0)
    return "vision_config.num_heads does not divide its hidden_size";
  if (vision.head_width() % 4 != 0)
    return "the width of a head of vision_config must be a multiple of 4";
  if (vision.window_pixels % (vision.merge_side * vision.patch_side) != 0)
    return "vision_config.window_size must be a multiple of " +
           std::to_string(vision.merge_side * vision.patch_side);
  const auto& full = vision.full_layers;
  const bool is_ascending = std::ranges::adjacent_find(full, std::greater_equal{}) == full.end();
  const bool is_inside = full.empty() || (full.front() >= 0 && full.back() < vision.layers);
  if (!is_ascending || !is_inside)
    return "vision_config.fullatt_block_indexes must be layers from 0 to " +
           std::to_string(vision.layers - 1) + ", each once and in their order";
  return "";
}

std::string flaw_of_ids(const QwenConfig& config) {
  const auto& ids = config.ids;
  for (const auto id : {ids.begin, ids.end, ids.image, ids.video})
    if (id < 0 || id >= config.text.vocabulary)
      return "a token of vision has the id " + std::to_string(id) + ", and vocab_size is " +
             std::to_string(config.text.vocabulary);
  return ids.image == ids.video ? "image_token_id and video_token_id are the same" : "";
}

}  // namespace

QwenConfig qwen_named(std::string_view name) {
  if (name == "qwen2.5-vl-7b") return published_7b();
  if (name == "qwen-nano") return nano();
  TJ_CHECK(name == "qwen2.5-vl-3b", "a model of this workload");
  return {};
}

std::string qwen_flaw(const QwenConfig& config) {
  for (const auto& [name, value] : extents_of(config))
    if (value < 1 || value > kExtentMax)
      return name + " is " + std::to_string(value) + "; it must be from 1 to " +
             std::to_string(kExtentMax);
  if (std::max(config.text.layers, config.vision.layers) > kLayersMax)
    return "it has more layers than " + std::to_string(kLayersMax);
  if (auto flaw = flaw_of_text(config.text); !flaw.empty()) return flaw;
  if (auto flaw = flaw_of_vision(config.vision); !flaw.empty()) return flaw;
  return flaw_of_ids(config);
}

QwenTensors qwen_tensors(const QwenConfig& config) {
  QwenTensors tensors;
  TensorSpecs specs(tensors.specs);
  add_vision(specs, config, tensors);
  add_text(specs, config.text, tensors);
  tensors.blocks = blocks_of(tensors);
  return tensors;
}

std::int64_t parameter_count(const QwenConfig& config) {
  std::int64_t total = 0;
  for (const auto& tensor : qwen_tensors(config).specs) total += element_count(tensor);
  return total;
}

ModelShape qwen_shape(const QwenConfig& config) {
  ModelShape shape;
  for (const auto& [name, value] : extents_of(config)) shape.push_back({name, "--model", value});
  shape.push_back({"tie_word_embeddings", "--model", config.text.is_tied ? 1 : 0});
  return shape;
}

}  // namespace tj::trainer
