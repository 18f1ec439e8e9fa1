#include "trainer/workloads/taehv/taehv_config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "contract/result.h"

namespace tj::trainer {
namespace {
using Kind = TaehvLayer::Kind;

constexpr std::size_t kBlocksOfStage = 3;

// Batch and rate of the author's recipe: 12 frames of 64 x 64, AdamW at 3e-4.
constexpr Preset kPresets[] = {
    {.name = "taehv-nano", .steps = 600, .batch_size = 8, .lr = 3e-3},
    {.name = "taehv", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
    {.name = "taew2_1", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
    {.name = "taehv1_5", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
    {.name = "taeh3", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
    {.name = "taew2_2", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
    {.name = "taeltx", .steps = 100'000, .batch_size = 16, .lr = 3e-4},
};
constexpr std::array<bool, kStages> kAllStages{true, true, true};
constexpr TaehvConfig kModels[] = {
    {.latent_channels = 16, .encoder_width = 16, .decoder_widths = {32, 16, 16, 16}},
    {},
    {},
    {.patch = 2, .latent_channels = 32},
    {.patch = 2, .latent_channels = 24},
    {.patch = 2, .latent_channels = 48},
    {.patch = 4, .latent_channels = 128, .halves_time = kAllStages, .doubles_time = kAllStages},
};

/// He et al. 2015 (Delving deep into rectifiers): what a ReLU takes of the variance is given back.
TensorInit he_init(std::int64_t fan_in, double factor = 1) {
  return {.kind = TensorInit::Kind::normal,
          .scale = factor * std::sqrt(2.0 / static_cast<double>(fan_in))};
}
/// What a block adds to its input is small at first: nine blocks one after another keep the scale.
constexpr double kAddedByBlock = 0.3;
/// What only resamples or changes the number of channels passes its input on at first. With random
/// weights there a deep stack sees little but the mean of its input, and learns for long to tell
/// colours apart.
TensorInit passing_on(std::int64_t fan_in) {
  auto init = he_init(fan_in, kAddedByBlock);
  init.kind = TensorInit::Kind::dirac;
  return init;
}

/// Appends layers and their tensors, with the names of a torch.nn.Sequential.
class Builder {
 public:
  Builder(std::string prefix, std::vector<TensorSpec>& tensors)
      : prefix_(std::move(prefix)), tensors_(tensors) {}

  void plain(Kind kind, std::int64_t channels) {
    add({.kind = kind, .in = channels, .out = channels});
  }

  void conv(std::int64_t in, std::int64_t out, bool has_bias = true, std::int64_t stride = 1) {
    convolution(".", in, out, 3, has_bias, has_bias ? he_init(9 * in) : passing_on(9 * in));
    add({.kind = Kind::conv, .in = in, .out = out, .stride = stride, .has_bias = has_bias});
  }

  void memory(std::int64_t channels) {
    convolution(".conv.0.", 2 * channels, channels, 3, true, he_init(9 * 2 * channels));
    convolution(".conv.2.", channels, channels, 3, true, he_init(9 * channels));
    convolution(".conv.4.", channels, channels, 3, true, he_init(9 * channels, kAddedByBlock));
    add({.kind = Kind::memory, .in = channels, .out = channels});
  }

  void pool(std::int64_t channels, std::int64_t stride) {
    convolution(".conv.", stride * channels, channels, 1, false, passing_on(stride * channels));
    add({.kind = Kind::pool, .in = channels, .out = channels, .stride = stride, .has_bias = false});
  }

  void grow(std::int64_t channels, std::int64_t stride) {
    convolution(".conv.", channels, stride * channels, 1, false, passing_on(channels));
    add({.kind = Kind::grow, .in = channels, .out = channels, .stride = stride, .has_bias = false});
  }

  std::vector<TaehvLayer> take() { return std::move(layers_); }

 private:
  void convolution(const std::string& place, std::int64_t in, std::int64_t out, std::int64_t side,
                   bool has_bias, const TensorInit& init) {
    const std::string name = prefix_ + std::to_string(layers_.size()) + place;
    tensors_.push_back({.name = name + "weight", .shape = {out, in, side, side}, .init = init});
    if (has_bias) tensors_.push_back({.name = name + "bias", .shape = {out}});
  }

  void add(TaehvLayer layer) {
    layer.first_tensor = first_tensor_;
    layer.tensor_count = tensors_.size() - std::exchange(first_tensor_, tensors_.size());
    layers_.push_back(layer);
  }

  std::string prefix_;
  std::vector<TensorSpec>& tensors_;
  std::vector<TaehvLayer> layers_;
  std::size_t first_tensor_ = tensors_.size();
};

std::vector<TaehvLayer> encoder_of(const TaehvConfig& config, std::vector<TensorSpec>& tensors) {
  Builder builder("encoder.", tensors);
  const auto width = config.encoder_width;
  builder.conv(kImageChannels * config.patch * config.patch, width);
  builder.plain(Kind::relu, width);
  for (const bool halves_time : config.halves_time) {
    builder.pool(width, halves_time ? 2 : 1);
    builder.conv(width, width, /*has_bias=*/false, /*stride=*/2);
    for (std::size_t block = 0; block < kBlocksOfStage; ++block) builder.memory(width);
  }
  builder.conv(width, config.latent_channels);
  return builder.take();
}

std::vector<TaehvLayer> decoder_of(const TaehvConfig& config, std::vector<TensorSpec>& tensors) {
  Builder builder("decoder.", tensors);
  const auto& widths = config.decoder_widths;
  builder.plain(Kind::clamp, config.latent_channels);
  builder.conv(config.latent_channels, widths[0]);
  builder.plain(Kind::relu, widths[0]);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    for (std::size_t block = 0; block < kBlocksOfStage; ++block) builder.memory(widths[stage]);
    builder.plain(Kind::upsample, widths[stage]);
    builder.grow(widths[stage], config.doubles_time[stage] ? 2 : 1);
    builder.conv(widths[stage], widths[stage + 1], /*has_bias=*/false);
  }
  builder.plain(Kind::relu, widths[kStages]);
  builder.conv(widths[kStages], kImageChannels * config.patch * config.patch);
  // Of untrained weights the picture is grey: half of what a pixel can be.
  tensors.back().init = {.kind = TensorInit::Kind::constant, .scale = 0.5};
  tensors[tensors.size() - 2].init.scale *= kAddedByBlock;
  return builder.take();
}

std::int64_t doublings(const std::array<bool, kStages>& stages) {
  return std::int64_t{1} << std::ranges::count(stages, true);
}

/// Of one side: multiplications and additions while height, width and frames change.
double flops_of(const std::vector<TaehvLayer>& layers, double pixels, double frames) {
  double flops = 0;
  for (const auto& layer : layers) {
    const auto in = static_cast<double>(layer.in), out = static_cast<double>(layer.out);
    const auto stride = static_cast<double>(layer.stride);
    switch (layer.kind) {
      case Kind::conv:
        pixels /= stride * stride;
        flops += 2 * 9 * in * out * pixels * frames;
        break;
      case Kind::memory: flops += 2 * 9 * 4 * in * out * pixels * frames; break;
      case Kind::pool:
        frames /= stride;
        flops += 2 * stride * in * out * pixels * frames;
        break;
      case Kind::grow:
        flops += 2 * stride * in * out * pixels * frames;
        frames *= stride;
        break;
      case Kind::upsample: pixels *= 4; break;
      case Kind::clamp:
      case Kind::relu: break;
    }
  }
  return flops;
}

void append_blocks(std::vector<ModelBlock>& blocks, const std::vector<TaehvLayer>& layers,
                   const std::array<std::size_t, kStages>& pieces) {
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const auto end = piece + 1 < pieces.size() ? pieces[piece + 1] : layers.size();
    ModelBlock block;
    for (auto index = pieces[piece]; index < end; ++index)
      for (std::size_t i = 0; i < layers[index].tensor_count; ++i)
        block.tensors.push_back(layers[index].first_tensor + i);
    blocks.push_back(std::move(block));
  }
}

}  // namespace

std::vector<ModelBlock> taehv_blocks(const TaehvLayers& layers) {
  std::vector<ModelBlock> blocks;
  append_blocks(blocks, layers.encoder, kEncoderPieces);
  append_blocks(blocks, layers.decoder, kDecoderPieces);
  return blocks;
}

std::int64_t TaehvConfig::frames_of_latent() const { return doublings(halves_time); }
std::int64_t TaehvConfig::frames_to_trim() const { return doublings(doubles_time) - 1; }

TaehvLayers taehv_layers(const TaehvConfig& config) {
  TaehvLayers layers;
  layers.encoder = encoder_of(config, layers.tensors);
  layers.decoder = decoder_of(config, layers.tensors);
  return layers;
}

std::span<const Preset> taehv_presets() { return kPresets; }

TaehvConfig taehv_model(const Preset& preset) {
  const auto found = std::ranges::find(kPresets, preset.name, &Preset::name);
  TJ_CHECK(found != std::end(kPresets), "a preset of this workload");
  return kModels[found - kPresets];
}

double taehv_flops_of_frame(const TaehvConfig& config, std::int64_t height, std::int64_t width) {
  const auto layers = taehv_layers(config);
  const double pixels =
      static_cast<double>(height * width) / static_cast<double>(config.patch * config.patch);
  const double latent_pixels = pixels / static_cast<double>(1 << (2 * kStages));
  const double latents = 1 / static_cast<double>(config.frames_of_latent());
  return flops_of(layers.encoder, pixels, 1) + flops_of(layers.decoder, latent_pixels, latents);
}

std::string taehv_config_json(const TaehvConfig& config) {
  const nlohmann::ordered_json document = {{"model_type", "taehv"},
                                           {"patch_size", config.patch},
                                           {"latent_channels", config.latent_channels},
                                           {"encoder_width", config.encoder_width},
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
  for (std::size_t i = 0; i < config.decoder_widths.size(); ++i)
    shape.push_back({"decoder_width_" + std::to_string(i), "--model", config.decoder_widths[i]});
  return shape;
}

}  // namespace tj::trainer
