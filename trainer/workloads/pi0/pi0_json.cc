#include "trainer/workloads/pi0/pi0_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/values/json_integer.h"
#include "trainer/values/json_text.h"

namespace tj::trainer {
namespace {
using json = nlohmann::ordered_json;  // cameras stay in their order

constexpr int kIndent = 2;
constexpr std::int64_t kExtentMax = 1'000'000;
constexpr std::int64_t kLayersMax = 1000;
constexpr std::size_t kCamerasMax = 64;
constexpr const char* kSizes = "sizes";
constexpr std::string_view kImages = "observation.images.";
constexpr const char* kState = "observation.state";

Error wrong(const std::filesystem::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

/// The sizes that LeRobot knows by name.
bool is_of_published_sizes(const Pi0Config& config) {
  Pi0Config published;
  Pi0Vision vision;
  vision.image_side = config.vision.image_side;
  return config.vision == vision && config.layers == published.layers &&
         config.heads == published.heads && config.head_width == published.head_width &&
         config.prefix == published.prefix && config.expert == published.expert &&
         config.vocabulary == published.vocabulary;
}

/// Each size and its name, for the writer and for the reader.
template <typename Config>
auto sizes_of(Config& config) {
  auto& vision = config.vision;
  using Place = decltype(&vision.layers);
  return std::vector<std::pair<const char*, Place>>{{"patch_side", &vision.patch_side},
                                                    {"vision_layers", &vision.layers},
                                                    {"vision_heads", &vision.heads},
                                                    {"vision_width", &vision.width},
                                                    {"vision_hidden", &vision.hidden},
                                                    {"layers", &config.layers},
                                                    {"heads", &config.heads},
                                                    {"head_width", &config.head_width},
                                                    {"prefix_width", &config.prefix.width},
                                                    {"prefix_hidden", &config.prefix.hidden},
                                                    {"expert_width", &config.expert.width},
                                                    {"expert_hidden", &config.expert.hidden},
                                                    {"vocabulary", &config.vocabulary}};
}

/// LeRobot's NormalizationMode.
const char* mode_of(Normalisation normalisation) {
  switch (normalisation) {
    case Normalisation::none: return "IDENTITY";
    case Normalisation::mean_std: return "MEAN_STD";
    case Normalisation::quantiles: return "QUANTILES";
  }
  return "";
}

json input_features(const Pi0Config& config) {
  json features = json::object();
  const auto side = config.vision.image_side;
  for (const auto& camera : config.cameras)
    features[std::string(kImages) + camera] = {{"type", "VISUAL"},
                                               {"shape", {kPi0ImageChannels, side, side}}};
  features[kState] = {{"type", "STATE"}, {"shape", {config.state_width}}};
  return features;
}

void read_features(const json& document, Pi0Config& config) {
  if (const auto inputs = document.value("input_features", json::object()); !inputs.empty()) {
    config.cameras.clear();
    for (const auto& [name, feature] : inputs.items())
      if (name.starts_with(kImages)) config.cameras.push_back(name.substr(kImages.size()));
  }
  config.actions_counted = config.action_width;
  const auto outputs = document.value("output_features", json::object());
  if (outputs.contains("action"))
    config.actions_counted = integer_of(outputs.at("action").at("shape").at(0));
}

std::optional<std::int64_t> square_side(const json& document, std::int64_t otherwise) {
  if (!document.contains("image_resolution")) return otherwise;
  const auto& sides = document.at("image_resolution");
  const auto height = integer_of(sides.at(0)), width = integer_of(sides.at(1));
  return height == width ? std::optional(height) : std::nullopt;
}

/// Why no such model can be made; empty: it can.
std::string flaw_of(const Pi0Config& config) {
  const std::pair<const char*, std::int64_t> extents[] = {
      {"image_resolution", config.vision.image_side},
      {"tokenizer_max_length", config.prompt_tokens},
      {"chunk_size", config.horizon},
      {"max_state_dim", config.state_width},
      {"max_action_dim", config.action_width}};
  const auto is_wrong = [](std::int64_t value) { return value < 1 || value > kExtentMax; };
  const auto text = [](const char* name, std::int64_t value) {
    return std::string(name) + " is " + std::to_string(value) + "; it must be from 1 to " +
           std::to_string(kExtentMax);
  };
  for (const auto& [name, value] : extents)
    if (is_wrong(value)) return text(name, value);
  for (const auto& [name, value] : sizes_of(config))
    if (is_wrong(*value)) return text(name, *value);
  if (std::max(config.layers, config.vision.layers) > kLayersMax)
    return "it has more layers than " + std::to_string(kLayersMax);
  if (config.cameras.empty() || config.cameras.size() > kCamerasMax)
    return "input_features has " + std::to_string(config.cameras.size()) +
           " images; it must have from 1 to " + std::to_string(kCamerasMax);
  if (config.actions_counted < 1 || config.actions_counted > config.action_width)
    return "the action has " + std::to_string(config.actions_counted) +
           " values; it must have from 1 to max_action_dim, " + std::to_string(config.action_width);
  if (config.vision.image_side % config.vision.patch_side != 0)
    return "image_resolution must be a multiple of " + std::to_string(config.vision.patch_side);
  if (config.vision.width % config.vision.heads != 0) return "vision_heads don't divide the width";
  if (config.head_width % 2 != 0 || config.expert.width % 2 != 0)
    return "head_width and expert_width must be even";
  return "";
}

Result<Pi0Config> read_fields(const json& document, const std::filesystem::path& file) {
  const auto type = document.at("type").get<std::string>();
  if (type != "pi0" && type != "pi05")
    return wrong(file, "type is \"" + type + "\"; it must be pi0 or pi05");
  Pi0Config config;
  if (type == "pi05") {
    config.kind = Pi0Config::Kind::pi05;
    config.prompt_tokens = 200;  // LeRobot's default
  }
  const std::pair<const char*, std::int64_t*> fields[] = {
      {"tokenizer_max_length", &config.prompt_tokens},
      {"chunk_size", &config.horizon},
      {"max_state_dim", &config.state_width},
      {"max_action_dim", &config.action_width}};
  for (const auto& [name, place] : fields)
    if (document.contains(name)) *place = integer_of(document.at(name));
  const auto side = square_side(document, config.vision.image_side);
  if (!side) return wrong(file, "image_resolution is not square");
  config.vision.image_side = *side;
  read_features(document, config);
  if (document.contains(kSizes)) {
    const auto& sizes = document.at(kSizes);
    for (const auto& [name, place] : sizes_of(config)) *place = integer_of(sizes.at(name));
  } else if (document.value("paligemma_variant", "gemma_2b") != "gemma_2b" ||
             document.value("action_expert_variant", "gemma_300m") != "gemma_300m") {
    return wrong(file, "is of another variant than gemma_2b with gemma_300m");
  }
  if (auto flaw = flaw_of(config); !flaw.empty()) return wrong(file, std::move(flaw));
  return config;
}

}  // namespace

std::string pi0_config_json(const Pi0Config& config, Normalisation normalisation) {
  const bool is_published = is_of_published_sizes(config);
  const char* const scale = mode_of(normalisation);
  const auto side = config.vision.image_side;
  json document = {
      {"type", config.is_pi05() ? "pi05" : "pi0"},
      {"paligemma_variant", is_published ? "gemma_2b" : "other"},
      {"action_expert_variant", is_published ? "gemma_300m" : "other"},
      {"dtype", "float32"},
      {"n_obs_steps", 1},
      {"chunk_size", config.horizon},
      {"n_action_steps", config.horizon},
      {"max_state_dim", config.state_width},
      {"max_action_dim", config.action_width},
      {"image_resolution", {side, side}},
      {"tokenizer_max_length", config.prompt_tokens},
      {"normalization_mapping", {{"VISUAL", "IDENTITY"}, {"STATE", scale}, {"ACTION", scale}}},
      {"input_features", input_features(config)},
      {"output_features", {{"action", {{"type", "ACTION"}, {"shape", {config.actions_counted}}}}}}};
  if (!is_published)
    for (const auto& [name, place] : sizes_of(config)) document[kSizes][name] = *place;
  return document.dump(kIndent) + "\n";
}

Result<Pi0Config> pi0_config_from(const std::string& text, const std::filesystem::path& file) {
  const auto document = json_of<json>(text);
  if (!document.is_object()) return wrong(file, "is not a JSON object (cut short?)");
  try {
    return read_fields(document, file);
  } catch (const json::exception& failure) {
    return wrong(file,
                 std::string("lacks a field of a pi0, or has a wrong one: ") + failure.what());
  }
}

}  // namespace tj::trainer
