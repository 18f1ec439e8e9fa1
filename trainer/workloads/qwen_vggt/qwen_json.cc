#include "trainer/workloads/qwen_vggt/qwen_json.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
using json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr const char* kType = "qwen2_5_vl";
constexpr const char* kArchitecture = "Qwen2_5_VLForConditionalGeneration";

Error wrong(const std::filesystem::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

/// Each size that must be there, and its key, for the writer and for the reader.
template <typename Text>
auto sizes_of_text(Text& text) {
  using Place = decltype(&text.width);
  return std::vector<std::pair<const char*, Place>>{
      {"vocab_size", &text.vocabulary},     {"hidden_size", &text.width},
      {"intermediate_size", &text.hidden},  {"num_hidden_layers", &text.layers},
      {"num_attention_heads", &text.heads}, {"num_key_value_heads", &text.key_value_heads}};
}

template <typename Vision>
auto sizes_of_vision(Vision& vision) {
  using Place = decltype(&vision.width);
  return std::vector<std::pair<const char*, Place>>{
      {"hidden_size", &vision.width},
      {"intermediate_size", &vision.hidden},
      {"depth", &vision.layers},
      {"num_heads", &vision.heads},
      {"patch_size", &vision.patch_side},
      {"spatial_merge_size", &vision.merge_side},
      {"temporal_patch_size", &vision.frames_of_patch},
      {"window_size", &vision.window_pixels},
      {"tokens_per_second", &vision.positions_of_second}};
}

template <typename Ids>
auto ids_of(Ids& ids) {
  using Place = decltype(&ids.image);
  return std::vector<std::pair<const char*, Place>>{{"vision_start_token_id", &ids.begin},
                                                    {"vision_end_token_id", &ids.end},
                                                    {"image_token_id", &ids.image},
                                                    {"video_token_id", &ids.video}};
}

/// Names the key where it is missing, or has a wrong value.
template <typename Sizes>
void read_sizes(const json& object, const Sizes& sizes) {
  using Integer = std::remove_reference_t<decltype(*sizes.front().second)>;
  for (const auto& [key, place] : sizes) *place = json_value<Integer>(object.at(key), key);
}

/// What stands at `key`, unless it is missing or null.
const json* found(const json& object, const char* key) {
  const auto place = object.find(key);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

void read_real(const json& object, const char* key, double& into) {
  if (const auto* value = found(object, key)) into = json_value<double>(*value, key);
}

/// `text`: the object that has the sizes; new files have all of it in rope_parameters.
void read_rotary(const json& text, QwenText& into) {
  read_real(text, "rope_theta", into.rotary_base);
  const auto* rotary = found(text, "rope_parameters");
  if (rotary == nullptr) rotary = found(text, "rope_scaling");
  if (rotary == nullptr) return;
  read_real(*rotary, "rope_theta", into.rotary_base);
  const auto* sections = found(*rotary, "mrope_section");
  if (sections == nullptr) return;
  for (std::size_t axis = 0; axis < into.mrope_sections.size(); ++axis)
    into.mrope_sections[axis] = json_value<std::int64_t>(sections->at(axis), "mrope_section");
}

void read_text(const json& object, QwenText& text) {
  read_sizes(object, sizes_of_text(text));
  read_real(object, "rms_norm_eps", text.norm_eps);
  if (const auto* most = found(object, "max_position_embeddings"))
    text.positions_max = json_value<std::int64_t>(*most, "max_position_embeddings");
  read_rotary(object, text);
}

void read_vision(const json& object, QwenVision& vision) {
  read_sizes(object, sizes_of_vision(vision));
  vision.full_layers.clear();
  for (const auto& layer : object.at("fullatt_block_indexes"))
    vision.full_layers.push_back(json_value<std::int64_t>(layer, "fullatt_block_indexes"));
}

bool is_set(const json& object, const char* key) {
  const auto* value = found(object, key);
  return value != nullptr && json_value<bool>(*value, key);
}

/// What such files may say and this model doesn't compute; empty: nothing.
std::string unknown_in(const json& text, const json& vision, const QwenConfig& config) {
  for (const auto* part : {&text, &vision})
    if (part->value("hidden_act", "silu") != "silu")
      return "hidden_act is \"" + part->value("hidden_act", "") + "\"; only silu is computed";
  if (is_set(text, "use_sliding_window")) return "use_sliding_window is true; it is not computed";
  for (const char* const key : {"rope_parameters", "rope_scaling"})
    if (const auto* rotary = found(text, key)) {
      const auto type = rotary->value("rope_type", rotary->value("type", "default"));
      if (type != "default" && type != "mrope")
        return std::string(key) + " has the type \"" + type + "\"; only mrope is computed";
    }
  const auto* out = found(vision, "out_hidden_size");
  if (out != nullptr && integer_of(*out) != config.text.width)
    return "vision_config.out_hidden_size is " + out->dump() + ", and hidden_size is " +
           std::to_string(config.text.width);
  for (const char* const key : {"in_channels", "in_chans"})
    if (const auto* colours = found(vision, key); colours && integer_of(*colours) != kColours)
      return "vision_config." + std::string(key) + " is " + colours->dump() + "; it must be 3";
  return "";
}

Result<QwenConfig> read_fields(const json& document, const std::filesystem::path& file) {
  const auto type = json_value<std::string>(document.at("model_type"), "model_type");
  if (type != kType) return wrong(file, "model_type is \"" + type + "\"; it must be " + kType);
  QwenConfig config;
  const auto* nested = found(document, "text_config");
  const auto& text = nested == nullptr ? document : *nested;
  const auto& vision = document.at("vision_config");
  read_text(text, config.text);
  read_vision(vision, config.vision);
  for (const auto& [key, place] : ids_of(config.ids))
    if (const auto* id = found(document, key)) *place = json_value<std::int32_t>(*id, key);
  config.text.is_tied =
      is_set(document, "tie_word_embeddings") || is_set(text, "tie_word_embeddings");
  if (auto unknown = unknown_in(text, vision, config); !unknown.empty())
    return wrong(file, std::move(unknown));
  if (auto flaw = qwen_flaw(config); !flaw.empty()) return wrong(file, std::move(flaw));
  return config;
}

}  // namespace

std::string qwen_config_json(const QwenConfig& config) {
  const auto& text = config.text;
  json document = {{"architectures", {kArchitecture}}, {"model_type", kType}};
  for (const auto& [key, place] : sizes_of_text(text)) document[key] = *place;
  document["hidden_act"] = "silu";
  document["max_position_embeddings"] = text.positions_max;
  document["rms_norm_eps"] = text.norm_eps;
  document["rope_theta"] = text.rotary_base;
  document["rope_scaling"] = {{"type", "mrope"}, {"mrope_section", text.mrope_sections}};
  document["use_sliding_window"] = false;
  document["tie_word_embeddings"] = text.is_tied;
  document["torch_dtype"] = "float32";
  for (const auto& [key, place] : ids_of(config.ids)) document[key] = *place;
  json vision = {{"model_type", kType}, {"hidden_act", "silu"}, {"in_channels", kColours}};
  for (const auto& [key, place] : sizes_of_vision(config.vision)) vision[key] = *place;
  vision["out_hidden_size"] = text.width;
  vision["fullatt_block_indexes"] = config.vision.full_layers;
  document["vision_config"] = std::move(vision);
  return document.dump(kIndent) + "\n";
}

Result<QwenConfig> qwen_config_from(const std::string& text, const std::filesystem::path& file) {
  const auto document = json_of<json>(text);
  if (!document.is_object()) return wrong(file, "is not a JSON object (cut short?)");
  try {
    return read_fields(document, file);
  } catch (const json::exception& failure) {
    return wrong(file, std::string("lacks a field of a Qwen2.5-VL, or has a wrong one: ") +
                           json_words(failure));
  }
}

}  // namespace tj::trainer
