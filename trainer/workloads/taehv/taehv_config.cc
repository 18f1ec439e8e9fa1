#include "trainer/workloads/taehv/taehv_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "contract/result.h"

namespace tj::trainer {
namespace {
using enum TaehvConfig::Decoder;

struct Variant {
  const char* name;
  TaehvConfig model;
};
constexpr std::array<bool, kStages> kAllStages{true, true, true};
constexpr TaehvConfig kHunyuan{};
constexpr TaehvConfig kLtx{
    .patch = 4, .latent_channels = 128, .halves_time = kAllStages, .doubles_time = kAllStages};

// By the names of the published files. Several are of one shape, of the latents of several models.
constexpr Variant kVariants[] = {
    {"taehv-nano", {.encoder_width = 16, .decoder_widths = {32, 16, 16, 16}}},
    {"taehv-nano-super",
     {.encoder_width = 16, .decoder = super, .decoder_widths = {32, 16, 16, 16}}},
    {"taehv", kHunyuan},
    {"taew2_1", kHunyuan},
    {"taecvx", kHunyuan},
    {"taeos1_3", kHunyuan},
    {"taehv1_5", {.patch = 2, .latent_channels = 32}},
    {"taehv1_5_super",
     {.patch = 2, .latent_channels = 32, .decoder = super, .decoder_widths = {512, 256, 128, 64}}},
    {"taeh3", {.patch = 2, .latent_channels = 24}},
    {"taew2_2", {.patch = 2, .latent_channels = 48}},
    {"taew2_2_super",
     {.patch = 2, .latent_channels = 48, .decoder = super, .decoder_widths = {512, 256, 128, 64}}},
    {"taeltx", kLtx},
    {"taeltx_2", kLtx},
    {"taeltx2_3", kLtx},
    {"taeltx2_3_wide",
     {.patch = 4,
      .latent_channels = 128,
      .decoder = wide,
      .decoder_widths = {1024, 512, 256, 64},
      .halves_time = kAllStages,
      .doubles_time = kAllStages}},
};

// 16 clips a GPU, as in the author's recipe on one, and its rate by the square root of the batch.
// Not yet trained with on a GPU.
constexpr GpuConfig kConfigs[] = {
    {.name = "taehv-8gpu", .ranks = 8, .batch_size = 128, .lr = 8.5e-4, .data_threads = 2},
    {.name = "taehv-16gpu", .ranks = 16, .batch_size = 256, .lr = 1.2e-3, .data_threads = 2},
};

/// Batch and rate of the author's recipe: 12 frames of 64 x 64, AdamW at 3e-4.
constexpr Preset preset_of(const Variant& variant) {
  if (std::string_view(variant.name).starts_with(kTaehvNano))
    return {.name = variant.name, .steps = 600, .batch_size = 8, .lr = 2e-3};
  return {
      .name = variant.name, .steps = 100'000, .batch_size = 16, .lr = 3e-4, .configs = kConfigs};
}

constexpr auto kPresets = [] {
  std::array<Preset, std::size(kVariants)> presets{};
  for (std::size_t i = 0; i < presets.size(); ++i) presets[i] = preset_of(kVariants[i]);
  return presets;
}();

const char* decoder_name(TaehvConfig::Decoder decoder) {
  return decoder == plain ? "plain" : decoder == wide ? "wide" : "super";
}

std::int64_t doublings(const std::array<bool, kStages>& stages) {
  return std::int64_t{1} << std::ranges::count(stages, true);
}

}  // namespace

std::int64_t TaehvConfig::frames_of_latent() const { return doublings(halves_time); }
std::int64_t TaehvConfig::frames_to_trim() const { return doublings(doubles_time) - 1; }

std::span<const Preset> taehv_presets() { return kPresets; }

TaehvConfig taehv_model(const Preset& preset) {
  const auto found = std::ranges::find(kPresets, preset.name, &Preset::name);
  TJ_CHECK(found != kPresets.end(), "a preset of this workload");
  return kVariants[found - kPresets.begin()].model;
}

std::string taehv_config_json(const TaehvConfig& config) {
  const nlohmann::ordered_json document = {{"model_type", "taehv"},
                                           {"patch_size", config.patch},
                                           {"latent_channels", config.latent_channels},
                                           {"encoder_width", config.encoder_width},
                                           {"decoder", decoder_name(config.decoder)},
                                           {"decoder_widths", config.decoder_widths},
                                           {"encoder_time_downscale", config.halves_time},
                                           {"decoder_time_upscale", config.doubles_time}};
  return document.dump(2) + "\n";
}

ModelShape taehv_shape(const TaehvConfig& config) {
  const auto bits = [](const std::array<bool, kStages>& stages) {
    return std::int64_t{stages[0]} + 2 * stages[1] + 4 * stages[2];
  };
  ModelShape shape{{"patch", "--model", config.patch},
                   {"latent_channels", "--model", config.latent_channels},
                   {"encoder_width", "--model", config.encoder_width},
                   {"halves_time", "--model", bits(config.halves_time)},
                   {"doubles_time", "--model", bits(config.doubles_time)}};
  if (config.decoder != plain)  // of the plain one there are checkpoints that don't say it
    shape.push_back({"decoder", "--model", static_cast<std::int64_t>(config.decoder)});
  for (std::size_t i = 0; i < config.decoder_widths.size(); ++i)
    shape.push_back({"decoder_width_" + std::to_string(i), "--model", config.decoder_widths[i]});
  return shape;
}

}  // namespace tj::trainer
