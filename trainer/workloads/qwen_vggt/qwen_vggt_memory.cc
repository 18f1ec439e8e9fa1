// T tokens of the language, P patches of the vision tower, J tokens that are judged, all of the
// samples of a pass together. Elements of half precision are those of products; the residual
// streams, norms and losses are float32 (docs/systems/qwen-vggt.md).
#include "trainer/workloads/qwen_vggt/qwen_vggt_memory.h"

#include <algorithm>

#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

constexpr double kFloat = 4;
constexpr double kHalf = 2;
constexpr double kIndex = 8;  // int64

double real(std::int64_t count) { return static_cast<double>(count); }

bool is_half(const PassRule& rule) { return rule.precision != Precision::fp32; }
double value_bytes(const PassRule& rule) { return is_half(rule) ? kHalf : kFloat; }

/// The sizes of a layer that decide what one token leaves.
struct LayerShape {
  double width = 0, hidden = 0, heads = 0;
  /// Products that take the first norm's output: in half precision each has its own copy of it.
  double inputs_of_attention = 1;
  /// In widths: q, k, v and what comes out, each as often as it is copied.
  double attention = 4;
  double matrices = 0;  // elements of all
};

LayerShape shape_of(const QwenText& text) {
  const double of_keys = real(text.key_value_heads * text.head_width());
  return {
      .width = real(text.width),
      .hidden = real(text.hidden),
      .heads = real(text.heads),
      .inputs_of_attention = 3,
      .attention = 4,
      .matrices = real(text.width) * (2 * real(text.width) + 2 * of_keys + 3 * real(text.hidden))};
}

/// Windows are cut out of q, k and v, and what comes out is put into order.
LayerShape shape_of(const QwenVision& vision) {
  return {.width = real(vision.width),
          .hidden = real(vision.hidden),
          .heads = real(vision.heads),
          .inputs_of_attention = 1,
          .attention = 5,
          .matrices = real(vision.width) * (4 * real(vision.width) + 3 * real(vision.hidden))};
}

/// A norm's input; without a kernel of its own, which GPUs have, it also leaves what its weights
/// are multiplied with.
double norm_bytes(double width, const PassRule& rule) {
  return width * kFloat * (rule.is_gpu ? 1 : 2);
}

/// A norm's output that goes into so many products.
double input_bytes(double width, double products, const PassRule& rule) {
  return width * (is_half(rule) ? products * kHalf : kFloat);
}

/// Of one token, behind attention.
double mlp_bytes(const LayerShape& layer, const PassRule& rule) {
  const double inside = 4 * layer.hidden * value_bytes(rule);  // gate, its SiLU, up, their product
  return norm_bytes(layer.width, rule) + input_bytes(layer.width, 2, rule) + inside;
}

/// Of one token, from the layer's input on.
double kept_bytes(const LayerShape& layer, const PassRule& rule) {
  return norm_bytes(layer.width, rule) + input_bytes(layer.width, layer.inputs_of_attention, rule) +
         layer.attention * layer.width * value_bytes(rule) + layer.heads * kFloat +
         mlp_bytes(layer, rule);
}

/// Of one token, while its backward is computed: gradients of the stream and inside the MLP.
double passing_bytes(const LayerShape& layer, const PassRule& rule) {
  return 2 * layer.width * kFloat + 2 * layer.hidden * value_bytes(rule);
}

struct Counts {
  double text = 0, patches = 0, judged = 0, scenes = 0, frames = 0, patches_of_frame = 0;
};

Counts counts_of(const ConversationSize& size, const PassRule& rule) {
  const double samples = real(rule.samples);
  const double pictures = real(size.pictures);
  return {.text = samples * real(size.tokens),
          .patches = samples * real(size.patches),
          .judged = samples * real(std::min(size.learned, size.tokens - 1)),
          .scenes = size.pictures > 0 ? samples : 0,
          .frames = samples * pictures,
          .patches_of_frame = size.pictures > 0 ? real(size.patches) / pictures : 0};
}

/// Bytes of one tower's layers.
struct Tower {
  double kept = 0;     // of all layers
  double working = 0;  // beside it, in the backward of one of them
};

Tower tower_of(const LayerShape& layer, std::int64_t layers, double tokens, const PassRule& rule) {
  const double inside = tokens * kept_bytes(layer, rule);
  const double passing = tokens * passing_bytes(layer, rule);
  const double of_gradient = is_half(rule) ? kHalf + kFloat : kFloat;
  if (!rule.recompute)
    return {.kept = real(layers) * inside,
            .working = passing + layer.width * layer.hidden * of_gradient};
  // The gradients of a layer come together, and its weights are cast anew.
  const double of_weights = layer.matrices * (of_gradient + (rule.casts_weights ? kHalf : 0));
  const double inputs = tokens * layer.width * kFloat;
  return {.kept = real(layers) * inputs, .working = inside + passing + of_weights};
}

/// What stands around the vision tower's layers: patches, positions, and what makes tokens of them.
double around_vision(const QwenVision& vision, double patches, const PassRule& rule) {
  const double pixels = real(vision.values_of_patch()) * value_bytes(rule);
  const double turns = real(vision.head_width()) * kFloat;
  const double merged = norm_bytes(real(vision.width), rule) +
                        input_bytes(real(vision.width), 1, rule) +
                        2 * real(vision.width) * value_bytes(rule);
  return patches * (pixels + turns + merged + 6 * kIndex);
}

double around_text(const QwenText& text, double tokens) {
  return tokens * (real(text.head_width()) * kFloat + 6 * kIndex);
}

/// VGGT's newest frames, and what the coupling leaves of them.
double coupling_bytes(const QwenVggtConfig& config, const Counts& counts, const PassRule& rule) {
  if (!config.coupling) return 0;
  const auto geometry = config.geometry();
  const double side = real(geometry.merge_side);
  const double of_patch = norm_bytes(real(geometry.features), rule) +
                          real(geometry.features) * (is_half(rule) ? kHalf : kFloat) +
                          2 * real(geometry.hidden) / (side * side) * value_bytes(rule);
  return counts.scenes * counts.patches_of_frame * of_patch;
}

struct Head {
  double kept = 0;     // of judged tokens, until their backward
  double forward = 0;  // of logits and their logarithms
  double working = 0;  // of them in backward
};

/// Logits, their logarithms and two gradients of that size; then the gradient of the matrix.
Head head_of(const QwenText& text, double judged, const PassRule& rule) {
  const double width = real(text.width), vocabulary = real(text.vocabulary);
  const double of_matrix = vocabulary * width * (value_bytes(rule) + (is_half(rule) ? kFloat : 0));
  const double gradient = judged * vocabulary * value_bytes(rule);
  return {.kept = judged * (norm_bytes(width, rule) + input_bytes(width, 1, rule)),
          .forward = 2 * judged * vocabulary * kFloat,
          .working = std::max(3 * judged * vocabulary * kFloat, gradient + of_matrix)};
}

/// Copies of weights for products of half precision: of a forward, and with recomputation of a
/// tower at a time, until it is through.
double cast_bytes(const QwenVggtConfig& config, const PassRule& rule) {
  return rule.casts_weights ? kHalf * real(parameter_count(config.qwen)) : 0;
}

/// At the highest, of Qwen's own passes.
double qwen_bytes(const QwenVggtConfig& config, const Counts& counts, const PassRule& rule) {
  const auto& [text, vision, ids] = config.qwen;
  const auto of_vision = tower_of(shape_of(vision), vision.layers, counts.patches, rule);
  auto of_text = tower_of(shape_of(text), text.layers, counts.text, rule);
  // The last layer's MLP is of judged tokens alone.
  if (!rule.recompute)
    of_text.kept -= (counts.text - counts.judged) * mlp_bytes(shape_of(text), rule);
  const auto head = head_of(text, counts.judged, rule);
  const double around = around_text(text, counts.text) +
                        around_vision(vision, counts.patches, rule) +
                        coupling_bytes(config, counts, rule);
  const double casts = cast_bytes(config, rule);
  const double all = around + of_vision.kept + of_text.kept + (rule.recompute ? 0 : casts);
  // In a forward of half precision the pixels in float32 are there, too.
  const double pixels =
      is_half(rule) ? counts.patches * real(vision.values_of_patch()) * kFloat : 0;
  return std::max({all + pixels + (rule.recompute ? casts : 0),  // the forward of the layers
                   all + pixels + head.kept + head.forward,      // of the head
                   all + head.kept + head.working,               // the backward of the head
                   all + of_text.working,                        // of the language
                   around + of_vision.kept + of_vision.working});
}

/// At the highest, while VGGT looks: its MLP, with all that a layer still holds (vggt_layer.cc).
double vggt_bytes(const VggtConfig& vggt, const Counts& counts, const PassRule& rule) {
  const double tokens = counts.frames * (counts.patches_of_frame + real(vggt.special_tokens()));
  // Frames as DINO has left them, twice; the stream before and behind attention, what the layer
  // before has left, and what goes into the MLP.
  constexpr double kStreams = 6;
  constexpr double kProducts = 5;  // q, k, v, and what comes out of attention, twice
  const double width = real(vggt.width);
  const double of_token = width * (kStreams * kFloat + kProducts * value_bytes(rule)) +
                          (is_half(rule) ? width * kHalf : 0) +
                          2 * real(vggt.hidden) * value_bytes(rule);
  return tokens * of_token;
}

bool is_shared_out(const PassRule& rule, const VggtRoom& room) {
  return room.is_shared_out && rule.ranks > 1;
}

struct VggtElements {
  double all = 0, layers = 0, largest = 0;  // the last: of one layer
  double walked = 0;  // of the layers that compute: the last of each kind does not
};

VggtElements elements_of(const VggtConfig& vggt) {
  VggtElements elements;
  const auto tensors = vggt_tensors(vggt);
  for (const auto& spec : tensors.specs) elements.all += real(element_count(spec));
  const auto add_layers = [&](const std::vector<std::size_t>& firsts, std::size_t count) {
    double layer = 0;
    for (const auto first : firsts) {
      layer = 0;
      for (auto at = first; at < first + count; ++at)
        layer += real(element_count(tensors.specs[at]));
      elements.layers += layer;
      elements.largest = std::max(elements.largest, layer);
    }
    return layer;
  };
  add_layers(tensors.dino_layers, kTensorsOfDinoLayer);
  const double last_in_frame = add_layers(tensors.frame_layers, kTensorsOfVggtLayer);
  const double last_over_all = add_layers(tensors.global_layers, kTensorsOfVggtLayer);
  elements.walked = elements.layers - last_in_frame - last_over_all;
  return elements;
}

std::vector<MemoryPart> held_bytes(const VggtElements& elements, double width, const Counts& counts,
                                   const PassRule& rule, const VggtRoom& room) {
  const auto& [all, layers, largest, walked] = elements;
  const bool is_shared = is_shared_out(rule, room);
  const double whole = is_shared ? all - layers + 2 * largest : all;
  const double shared = is_shared ? layers : 0;
  const double frame = counts.patches_of_frame * width * kFloat;
  const double seen =
      room.frames_max > 0 ? real(room.frames_max) * frame : real(room.cache_bytes_max);
  return {{.name = "frozen VGGT",
           .bytes = whole * value_bytes(rule),
           .shared_bytes = shared * value_bytes(rule)},
          {.name = "frames kept", .bytes = std::min(real(room.cache_bytes_max), seen)}};
}

std::string formula_text(const ConversationSize& size, const PassRule& rule) {
  const std::string conversations =
      rule.samples == 1 ? "a conversation" : grouped(rule.samples) + " conversations";
  return "by a formula, for " + conversations +
         " as large as the flags allow: " + grouped(size.tokens) + " tokens, " +
         grouped(size.learned) + " of them learned, " + grouped(size.pictures) +
         (size.pictures == 1 ? " picture" : " pictures");
}

}  // namespace

PassMemory qwen_vggt_memory(const QwenVggtConfig& config, const ConversationSize& size,
                            const PassRule& rule, const VggtRoom& room) {
  const auto counts = counts_of(size, rule);
  PassMemory memory{.activation_bytes = qwen_bytes(config, counts, rule),
                    .formula = formula_text(size, rule)};
  if (!config.coupling) return memory;
  const auto& vggt = config.coupling->vggt;
  const auto elements = elements_of(vggt);
  memory.held = held_bytes(elements, real(vggt.width), counts, rule, room);
  if (is_shared_out(rule, room)) memory.gathered_bytes = elements.walked * value_bytes(rule);
  // VGGT looks before anything else is computed; on a GPU beside the pass before.
  const double looking = vggt_bytes(vggt, counts, rule);
  const bool is_beside = rule.is_gpu && !is_shared_out(rule, room);
  auto& bytes = *memory.activation_bytes;
  bytes = is_beside ? bytes + looking : std::max(bytes, looking);
  return memory;
}

}  // namespace tj::trainer
