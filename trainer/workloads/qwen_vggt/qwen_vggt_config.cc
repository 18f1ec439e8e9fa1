#include "trainer/workloads/qwen_vggt/qwen_vggt_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "contract/result.h"
#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"
#include "trainer/workloads/qwen_vggt/qwen_json.h"

namespace tj::trainer {
namespace {
using json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr const char* kNano = "qwen-vggt-nano";
constexpr std::int64_t kHiddenMax = 1'000'000;
constexpr double kWeightMax = 1000;
constexpr double kColourNoise = 1e-6;
constexpr const char* kProcessor = "Qwen2_5_VLProcessor";

// 128 conversations in a step on any number of GPUs, one in a pass: JanusVLN's way.
constexpr GpuConfig kConfigs[] = {
    {.name = "qwen-1gpu", .ranks = 1, .batch_size = 128, .accumulation = 128, .lr = 2e-5},
    {.name = "qwen-8gpu", .ranks = 8, .batch_size = 128, .accumulation = 16, .lr = 2e-5},
    {.name = "qwen-16gpu", .ranks = 16, .batch_size = 128, .accumulation = 8, .lr = 2e-5},
};
constexpr Preset kPresets[] = {
    {.name = kNano, .steps = 500, .batch_size = 16, .lr = 3e-3},
    {.name = "qwen2.5-vl-3b", .steps = 10'000, .batch_size = 128, .lr = 2e-5, .configs = kConfigs},
    {.name = "qwen2.5-vl-7b", .steps = 10'000, .batch_size = 128, .lr = 2e-5, .configs = kConfigs},
};

Coupling nano_coupling() {
  return {.vggt = {.width = 32,
                   .hidden = 64,
                   .heads = 2,
                   .layers = 2,
                   .dino_layers = 2,
                   .positions_side = 4,
                   .registers = 2},
          .file = "",
          .hidden = 128};
}

/// Places behind `from` move by `count`.
std::vector<std::size_t> moved(std::vector<std::size_t> places, std::size_t from,
                               std::size_t count) {
  for (auto& place : places)
    if (place >= from) place += count;
  return places;
}

/// Each size of a VGGT and its key, for the writer and for the reader.
template <typename Vggt>
auto sizes_of(Vggt& vggt) {
  using Place = decltype(&vggt.width);
  return std::vector<std::pair<const char*, Place>>{{"width", &vggt.width},
                                                    {"hidden", &vggt.hidden},
                                                    {"heads", &vggt.heads},
                                                    {"layers", &vggt.layers},
                                                    {"dino_layers", &vggt.dino_layers},
                                                    {"patch_side", &vggt.patch_side},
                                                    {"positions_side", &vggt.positions_side},
                                                    {"registers", &vggt.registers}};
}

Error wrong(const std::filesystem::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

json coupling_json(const Coupling& coupling) {
  json object;
  for (const auto& [key, place] : sizes_of(coupling.vggt)) object[key] = *place;
  object["sight"] = coupling.sight == FrameSight::all ? "all" : "earlier";
  object["coupling_weight"] = coupling.weight;
  object["coupling_hidden"] = coupling.hidden;
  object["weights"] = coupling.file.empty() ? "random" : coupling.file;
  return object;
}

/// Throws json::exception.
Coupling coupling_from(const json& object) {
  Coupling coupling;
  for (const auto& [key, place] : sizes_of(coupling.vggt))
    *place = json_value<std::int64_t>(object.at(key), key);
  coupling.sight = object.at("sight") == "all" ? FrameSight::all : FrameSight::earlier;
  coupling.weight = json_value<double>(object.at("coupling_weight"), "coupling_weight");
  coupling.hidden = json_value<std::int64_t>(object.at("coupling_hidden"), "coupling_hidden");
  coupling.file = json_value<std::string>(object.at("weights"), "weights");
  if (coupling.file == "random") coupling.file.clear();
  return coupling;
}

std::string flaw_of(const Coupling& coupling) {
  if (auto flaw = vggt_flaw(coupling.vggt); !flaw.empty()) return flaw;
  if (coupling.hidden < 1 || coupling.hidden > kHiddenMax)
    return "coupling_hidden must be from 1 to " + std::to_string(kHiddenMax);
  if (!(std::abs(coupling.weight) <= kWeightMax)) return "coupling_weight is no such number";
  return "";
}

json patches_json(const PatchRule& rule) {
  return {{"patch_size", rule.patch_side},
          {"temporal_patch_size", rule.frames_of_patch},
          {"merge_size", rule.merge_side},
          // ColourScale's, as the published files write them
          {"image_mean", {0.48145466, 0.4578275, 0.40821073}},
          {"image_std", {0.26862954, 0.26130258, 0.27577711}}};
}

/// What else such a file may say of how pixels become values.
json pixels_json() {
  return {{"do_resize", true},
          {"do_rescale", true},
          {"do_normalize", true},
          {"rescale_factor", 1.0 / 255}};
}

/// Numbers that differ as little as a float's text and a double's do are alike.
bool is_alike(const json& one, const json& other) {
  if (one.is_number() && other.is_number())
    return std::abs(one.get<double>() - other.get<double>()) < kColourNoise;
  if (!one.is_array() || !other.is_array()) return one == other;
  return std::ranges::equal(one, other, is_alike);
}

/// As JSON, on one line; a long one is cut.
std::string value_text(const json& value) {
  constexpr std::size_t kBytesMax = 60;
  const auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= kBytesMax ? text : text.substr(0, kBytesMax) + "...";
}

/// `otherwise` where there is no whole number, or no object.
std::int64_t number_at(const json& object, const char* key, std::int64_t otherwise) {
  if (!object.is_object()) return otherwise;
  const auto found = object.find(key);
  return found == object.end() ? otherwise : json_integer<std::int64_t>(*found).value_or(otherwise);
}

double matrix_elements(std::span<const TensorSpec> specs, const std::string& prefix) {
  double elements = 0;
  for (const auto& spec : specs)
    if (spec.name.starts_with(prefix) && spec.shape.size() > 1)
      elements += static_cast<double>(element_count(spec));
  return elements;
}

/// Of T tokens that all see each other: q k^T and its product with v.
double attention_flops(std::int64_t layers, double tokens, double seen, std::int64_t width) {
  return 4 * static_cast<double>(layers) * tokens * seen * static_cast<double>(width);
}

double vggt_flops(const Coupling& coupling, double frames, double patches_of_frame) {
  const auto& vggt = coupling.vggt;
  const auto specs = vggt_tensors(vggt).specs;
  const double tokens = patches_of_frame + static_cast<double>(vggt.special_tokens());
  const double of_matrices =
      2 * frames * tokens *
      (matrix_elements(specs, "aggregator.") - matrix_elements(specs, "aggregator.camera_token"));
  return of_matrices +
         frames * attention_flops(vggt.dino_layers + vggt.layers, tokens, tokens, vggt.width) +
         attention_flops(vggt.layers, frames * tokens, frames * tokens, vggt.width);
}

}  // namespace

GeometryConfig QwenVggtConfig::geometry() const {
  TJ_CHECK(coupling.has_value(), "a coupling");
  return {.features = 2 * coupling->vggt.width,
          .hidden = coupling->hidden,
          .width = qwen.text.width,
          .merge_side = qwen.vision.merge_side,
          .weight = coupling->weight};
}

std::span<const Preset> qwen_vggt_presets() { return kPresets; }

bool is_nano(const Preset& preset) { return preset.name == kNano; }

QwenVggtConfig qwen_vggt_model(const Preset& preset) {
  if (is_nano(preset)) return {.qwen = qwen_named("qwen-nano"), .coupling = nano_coupling()};
  return {.qwen = qwen_named(preset.name), .coupling = Coupling{}};
}

ChatIds chat_ids(const QwenConfig& config) {
  ChatIds ids{.vision = config.ids};
  // A nano's own lie in front of those of its pictures, as Qwen's do.
  constexpr std::int32_t kBefore = 2;
  if (ids.turn_end < config.text.vocabulary) return ids;
  ids.turn_begin = std::max<std::int32_t>(0, config.ids.begin - kBefore);
  ids.turn_end = ids.turn_begin + 1;
  return ids;
}

QwenVggtTensors qwen_vggt_tensors(const QwenVggtConfig& config) {
  const auto qwen = qwen_tensors(config.qwen);
  QwenVggtTensors tensors{.specs = qwen.specs, .blocks = qwen.blocks};
  tensors.geometry = qwen.words;
  tensors.geometry_block = qwen.vision_layers.size() + 2;
  if (!config.coupling) return tensors;
  const auto own = geometry_tensors(config.geometry());
  tensors.geometry_count = own.size();
  const auto place = static_cast<std::ptrdiff_t>(tensors.geometry);
  tensors.specs.insert(tensors.specs.begin() + place, own.begin(), own.end());
  ModelBlock block;
  for (std::size_t i = 0; i < own.size(); ++i) block.tensors.push_back(tensors.geometry + i);
  for (auto& other : tensors.blocks)
    other.tensors = moved(std::move(other.tensors), tensors.geometry, own.size());
  tensors.blocks.insert(
      tensors.blocks.begin() + static_cast<std::ptrdiff_t>(tensors.geometry_block), block);
  return tensors;
}

ModelShape qwen_vggt_shape(const QwenVggtConfig& config) {
  auto shape = qwen_shape(config.qwen);
  shape.push_back({"vggt.width", "--vggt", config.coupling ? config.coupling->vggt.width : 0});
  shape.push_back({"vggt.layers", "--vggt", config.coupling ? config.coupling->vggt.layers : 0});
  return shape;
}

std::string qwen_vggt_config_json(const QwenVggtConfig& config) {
  if (!config.coupling) return qwen_config_json(config.qwen);
  auto document = json::parse(qwen_config_json(config.qwen));
  document["vggt"] = coupling_json(*config.coupling);
  return document.dump(kIndent, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<QwenVggtConfig> qwen_vggt_config_from(const std::string& text,
                                             const std::filesystem::path& file) {
  const auto qwen = qwen_config_from(text, file);
  if (!qwen) return qwen.error();
  QwenVggtConfig config{.qwen = *qwen, .coupling = std::nullopt};
  const auto document = json_of<json>(text);
  const auto found = document.find("vggt");
  if (found == document.end() || !found->is_object()) return config;
  try {
    config.coupling = coupling_from(*found);
  } catch (const json::exception& failure) {
    return wrong(file,
                 std::string("vggt lacks a field, or has a wrong one: ") + json_words(failure));
  }
  if (auto flaw = flaw_of(*config.coupling); !flaw.empty()) return wrong(file, "vggt: " + flaw);
  return config;
}

std::string preprocessor_json(const PatchRule& rule) {
  json document = {{"image_processor_type", "Qwen2VLImageProcessor"},
                   {"processor_class", kProcessor},
                   {"min_pixels", rule.pixels_min},
                   {"max_pixels", rule.pixels_max}};
  document.update(patches_json(rule));
  return document.dump(kIndent) + "\n";
}

std::string video_preprocessor_json(const PatchRule& rule, const SeenFrames& seen) {
  const auto least = std::min(seen.pixels_min, seen.pixels_max);
  json document = {
      {"video_processor_type", "Qwen2VLVideoProcessor"},
      {"processor_class", kProcessor},
      {"size", {{"shortest_edge", least}, {"longest_edge", seen.pixels_max}}},
      {"fps", seen.of_second},
      {"min_frames", seen.min},
      {"max_frames", seen.max},
  };
  document.update(patches_json(rule));
  return document.dump(kIndent) + "\n";
}

Result<void> check_patches(const std::string& text, const std::filesystem::path& file,
                           const PatchRule& rule) {
  const auto document = json_of<json>(text);
  if (!document.is_object()) return wrong(file, "is not a JSON object");
  auto wanted = patches_json(rule);
  wanted.update(pixels_json());
  for (const auto& [key, value] : wanted.items()) {
    const auto found = document.find(key);
    if (found == document.end() || found->is_null() || is_alike(*found, value)) continue;
    return wrong(file, key + " is " + value_text(*found) + "; it must be " + value_text(value) +
                           " for this model and trainer");
  }
  return {};
}

std::optional<PixelBounds> pixel_bounds_from(const std::string& text) {
  const auto document = json_of<json>(text);
  const auto size = document.is_object() ? document.value("size", json()) : json();
  const PixelBounds bounds{
      .min = number_at(document, "min_pixels", number_at(size, "shortest_edge", 0)),
      .max = number_at(document, "max_pixels", number_at(size, "longest_edge", 0))};
  if (bounds.min < 1 || bounds.max < bounds.min) return std::nullopt;
  return bounds;
}

std::optional<SeenFrames> seen_frames_from(const std::string& text) {
  const auto document = json_of<json>(text);
  if (!document.is_object()) return std::nullopt;
  SeenFrames seen;
  const auto size = document.value("size", json());
  seen.pixels_min = number_at(size, "shortest_edge", seen.pixels_min);
  seen.pixels_max = number_at(size, "longest_edge", seen.pixels_max);
  seen.min = number_at(document, "min_frames", seen.min);
  seen.max = number_at(document, "max_frames", seen.max);
  const auto fps = document.find("fps");
  if (fps != document.end() && fps->is_number()) seen.of_second = fps->get<double>();
  const bool is_sane = seen.of_second >= 0.001 && seen.of_second <= 1000 && seen.min >= 1 &&
                       seen.max >= 1 && seen.min <= kSeenFramesMax && seen.max <= kSeenFramesMax &&
                       seen.pixels_min >= 1 && seen.pixels_max >= seen.pixels_min;
  return is_sane ? std::optional(seen) : std::nullopt;
}

double qwen_vggt_flops(const QwenVggtConfig& config, const ConversationSize& size) {
  const auto& text = config.qwen.text;
  const auto& vision = config.qwen.vision;
  const auto specs = qwen_tensors(config.qwen).specs;
  const double tokens = static_cast<double>(size.tokens);
  const double patches = static_cast<double>(size.patches);
  const double pictures = static_cast<double>(std::max<std::int64_t>(1, size.pictures));
  const auto full = static_cast<std::int64_t>(vision.full_layers.size());
  const double window = std::pow(static_cast<double>(vision.window_pixels / vision.patch_side), 2);
  double flops = 2 * tokens * matrix_elements(specs, "model.layers.") +
                 attention_flops(text.layers, tokens, tokens / 2, text.width) +
                 2 * patches * matrix_elements(specs, "visual.") +
                 attention_flops(full, patches, patches / pictures, vision.width) +
                 attention_flops(vision.layers - full, patches, window, vision.width);
  if (config.coupling && size.pictures > 0) {
    constexpr double kBackwardToo = 3;  // VGGT has a forward pass alone
    flops += vggt_flops(*config.coupling, pictures, patches / pictures) / kBackwardToo;
  }
  return flops;
}

}  // namespace tj::trainer
