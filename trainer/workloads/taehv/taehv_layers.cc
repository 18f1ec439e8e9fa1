// The layers of a TAEHV and their tensors, in the order and with the names of the published files;
// what follows from them: blocks and work.
#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/workloads/taehv/taehv_config.h"

namespace tj::trainer {
namespace {
using Kind = TaehvLayer::Kind;

constexpr std::size_t kBlocksOfStage = 3;
constexpr std::int64_t kGroupWidth = 64;  // channels of a group of the wide decoder
constexpr std::int64_t kShuffled = 4;     // channels that become pixels of 2 x 2

struct Convolution {
  const char* place = ".";  // in its layer's name
  std::int64_t in = 0;      // channels
  std::int64_t out = 0;
  std::int64_t side = 3;
  std::int64_t groups = 1;
  bool has_bias = true;
  std::int64_t fan_in() const { return in / groups * side * side; }
};

/// He et al. 2015 (Delving deep into rectifiers): what a ReLU takes of the variance is given back.
TensorInit he_init(const Convolution& convolution, double factor = 1) {
  return {.kind = TensorInit::Kind::normal,
          .scale = factor * std::sqrt(2.0 / static_cast<double>(convolution.fan_in()))};
}
/// What a block adds to its input is small at first: nine blocks one after another keep the scale.
constexpr double kAddedByBlock = 0.1;
/// Of the picture of untrained weights.
constexpr double kContrast = 0.3;
/// What only resamples or changes the number of channels passes its input on at first: the latents
/// begin as a small picture of the frames. With random weights there a deep stack sees little but
/// the mean of its input, and learns for long to tell colours apart (16 dB in place of 24 after 300
/// steps of taehv-nano).
TensorInit passing_on(const Convolution& convolution) {
  auto init = he_init(convolution, kAddedByBlock);
  init.kind = TensorInit::Kind::dirac;
  return init;
}

/// Appends layers and their tensors, with the names of a torch.nn.Sequential.
class Builder {
 public:
  Builder(std::string prefix, std::vector<TensorSpec>& tensors)
      : prefix_(std::move(prefix)), tensors_(tensors), first_tensor_(tensors.size()) {}

  std::size_t size() const { return layers_.size(); }

  void plain(Kind kind) { add({.kind = kind}); }

  void conv(const Convolution& shape, std::int64_t stride = 1) {
    append(shape, passing_on(shape));
    add({.kind = Kind::conv, .stride = stride, .has_bias = shape.has_bias});
  }

  /// The published model repeats each pixel, then mixes channels, then convolves. To mix them first
  /// is the same and a quarter of the work, and the convolution can see repeated pixels itself.
  void upsample(std::int64_t in, std::int64_t out, std::int64_t stride) {
    plain(Kind::upsample);
    grow(in, stride);
    conv({.in = in, .out = out, .has_bias = false});
    layers_.back().doubles = true;
  }

  /// Twice the height and width, of four channels for one. The four of a place begin alike: what
  /// they make of it is the same picture, larger (Aitken et al. 2017, Checkerboard artifact free
  /// sub-pixel convolution).
  void shuffle(std::int64_t in, std::int64_t out) {
    const Convolution shape{.in = in, .out = kShuffled * out};
    auto init = passing_on(shape);
    init.repeats = kShuffled;
    append(shape, init);
    add({.kind = Kind::conv});
    plain(Kind::relu);
    plain(Kind::shuffle);
  }

  /// One whose output says nothing of its input at first.
  void random_conv(const Convolution& shape, double factor = 1) {
    random(shape, factor);
    add({.kind = Kind::conv, .has_bias = shape.has_bias});
  }

  void memory(std::int64_t channels) {
    random({.place = ".conv.0.", .in = 2 * channels, .out = channels});
    random({.place = ".conv.2.", .in = channels, .out = channels});
    random({.place = ".conv.4.", .in = channels, .out = channels}, kAddedByBlock);
    add({.kind = Kind::memory});
  }

  void wide_memory(std::int64_t n) {
    const auto groups = std::max<std::int64_t>(1, n / kGroupWidth);
    random({.place = ".conv.0.", .in = 2 * n, .out = n, .side = 1});
    random({.place = ".conv.2.", .in = n, .out = n, .groups = groups});
    random({.place = ".conv.4.", .in = n, .out = n, .side = 1});
    random({.place = ".conv.6.", .in = n, .out = n, .groups = groups}, kAddedByBlock);
    add({.kind = Kind::wide_memory});
  }

  void super_memory(std::int64_t n) {
    const Convolution each_channel{.place = ".conv.0.",
                                   .in = 2 * n,
                                   .out = 2 * n,
                                   .side = 7,
                                   .groups = 2 * n,
                                   .has_bias = false};
    append(each_channel, passing_on(each_channel));
    random({.place = ".conv.1.", .in = 2 * n, .out = 4 * n, .side = 1});
    random({.place = ".conv.3.", .in = 4 * n, .out = n, .side = 1, .has_bias = false},
           kAddedByBlock);
    add({.kind = Kind::super_memory});
  }

  void pool(std::int64_t channels, std::int64_t stride) {
    resample({.place = ".conv.",
              .in = stride * channels,
              .out = channels,
              .side = 1,
              .has_bias = false});
    add({.kind = Kind::pool, .stride = stride, .has_bias = false});
  }

  void grow(std::int64_t channels, std::int64_t stride) {
    resample({.place = ".conv.",
              .in = channels,
              .out = stride * channels,
              .side = 1,
              .has_bias = false});
    add({.kind = Kind::grow, .stride = stride, .has_bias = false});
  }

  /// No frame behind it is of another one.
  void drop_behind_last_grow(std::int64_t frames) {
    std::ranges::find(layers_.rbegin(), layers_.rend(), Kind::grow, &TaehvLayer::kind)->drops =
        frames;
  }

  std::vector<TaehvLayer> take() { return std::move(layers_); }

 private:
  void random(const Convolution& shape, double factor = 1) {
    append(shape, he_init(shape, factor));
  }
  void resample(const Convolution& shape) { append(shape, passing_on(shape)); }

  void append(const Convolution& shape, const TensorInit& init) {
    const std::string name = prefix_ + std::to_string(layers_.size()) + shape.place;
    tensors_.push_back({.name = name + "weight",
                        .shape = {shape.out, shape.in / shape.groups, shape.side, shape.side},
                        .init = init});
    weights_ += element_count(tensors_.back());
    if (shape.has_bias) tensors_.push_back({.name = name + "bias", .shape = {shape.out}});
  }

  void add(TaehvLayer layer) {
    layer.weights = std::exchange(weights_, 0);
    layer.first_tensor = first_tensor_;
    layer.tensor_count = tensors_.size() - std::exchange(first_tensor_, tensors_.size());
    layers_.push_back(layer);
  }

  std::string prefix_;
  std::vector<TensorSpec>& tensors_;
  std::vector<TaehvLayer> layers_;
  std::size_t first_tensor_;
  std::int64_t weights_ = 0;
};

void append_encoder(const TaehvConfig& config, TaehvLayers& layers) {
  Builder builder("encoder.", layers.tensors);
  const auto width = config.encoder_width;
  builder.conv({.in = kImageChannels * config.patch * config.patch, .out = width});
  builder.plain(Kind::relu);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    layers.encoder_pieces[stage] = stage == 0 ? 0 : builder.size();
    builder.pool(width, config.halves_time[stage] ? 2 : 1);
    builder.conv({.in = width, .out = width, .has_bias = false}, /*stride=*/2);
    for (std::size_t block = 0; block < kBlocksOfStage; ++block) builder.memory(width);
  }
  builder.conv({.in = width, .out = config.latent_channels});
  layers.encoder = builder.take();
}

/// The stages of the plain and of the wide decoder.
void append_stages(const TaehvConfig& config, Builder& builder, TaehvPieces& pieces) {
  const auto& widths = config.decoder_widths;
  const bool is_wide = config.decoder == TaehvConfig::Decoder::wide;
  builder.plain(Kind::clamp);
  builder.conv({.in = config.latent_channels, .out = widths[0]});
  builder.plain(Kind::relu);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    pieces[stage] = stage == 0 ? 0 : builder.size();
    for (std::size_t block = 0; block < kBlocksOfStage; ++block)
      is_wide ? builder.wide_memory(widths[stage]) : builder.memory(widths[stage]);
    builder.upsample(widths[stage], widths[stage + 1], config.doubles_time[stage] ? 2 : 1);
  }
  builder.plain(Kind::relu);
}

/// Those of the super decoder, whose latents are not clamped and whose blocks end without a ReLU.
void append_super_stages(const TaehvConfig& config, Builder& builder, TaehvPieces& pieces) {
  const auto& widths = config.decoder_widths;
  builder.conv({.in = config.latent_channels, .out = widths[0], .side = 1, .has_bias = false});
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    pieces[stage] = stage == 0 ? 0 : builder.size();
    const auto next = widths[stage + 1];
    for (std::size_t block = 0; block < kBlocksOfStage; ++block)
      builder.super_memory(widths[stage]);
    builder.shuffle(widths[stage], next);
    builder.grow(next, config.doubles_time[stage] ? 2 : 1);
  }
}

void append_decoder(const TaehvConfig& config, TaehvLayers& layers) {
  Builder builder("decoder.", layers.tensors);
  if (config.decoder == TaehvConfig::Decoder::super) {
    append_super_stages(config, builder, layers.decoder_pieces);
  } else {
    append_stages(config, builder, layers.decoder_pieces);
  }
  builder.random_conv(
      {.in = config.decoder_widths[kStages], .out = kImageChannels * config.patch * config.patch},
      kContrast);
  // Of untrained weights the picture is grey: half of what a pixel can be.
  layers.tensors.back().init = {.kind = TensorInit::Kind::constant, .scale = 0.5};
  builder.drop_behind_last_grow(config.frames_to_trim());
  layers.decoder = builder.take();
}

/// Of one side: multiplications and additions while height, width and frames change. A weight costs
/// two of them for each pixel of what its convolution makes.
double flops_of(const std::vector<TaehvLayer>& layers, double pixels, double frames) {
  double flops = 0;
  for (const auto& layer : layers) {
    const auto stride = static_cast<double>(layer.stride);
    if (layer.kind == Kind::conv) pixels *= layer.doubles ? 4 : 1 / (stride * stride);
    if (layer.kind == Kind::pool) frames /= stride;
    // Of repeated pixels 2 x 2 are seen in place of 3 x 3.
    const double used = layer.doubles ? 4.0 / 9 : 1;
    flops += 2 * static_cast<double>(layer.weights) * used * pixels * frames;
    if (layer.kind == Kind::grow) frames *= stride;
    if (layer.kind == Kind::shuffle) pixels *= 4;
  }
  return flops;
}

void append_blocks(std::vector<ModelBlock>& blocks, const std::vector<TaehvLayer>& layers,
                   const TaehvPieces& pieces) {
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

TaehvLayers taehv_layers(const TaehvConfig& config) {
  TaehvLayers layers;
  append_encoder(config, layers);
  append_decoder(config, layers);
  return layers;
}

std::vector<ModelBlock> taehv_blocks(const TaehvLayers& layers) {
  std::vector<ModelBlock> blocks;
  append_blocks(blocks, layers.encoder, layers.encoder_pieces);
  append_blocks(blocks, layers.decoder, layers.decoder_pieces);
  return blocks;
}

double taehv_flops_of_frame(const TaehvConfig& config, std::int64_t height, std::int64_t width) {
  const auto layers = taehv_layers(config);
  const double pixels =
      static_cast<double>(height * width) / static_cast<double>(config.patch * config.patch);
  const double latent_pixels = pixels / static_cast<double>(1 << (2 * kStages));
  const double latents = 1 / static_cast<double>(config.frames_of_latent());
  return flops_of(layers.encoder, pixels, 1) + flops_of(layers.decoder, latent_pixels, latents);
}

}  // namespace tj::trainer
