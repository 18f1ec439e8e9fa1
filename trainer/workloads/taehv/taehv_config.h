// The shape of a TAEHV, the tiny autoencoder for video (github.com/madebyollin/taehv), and its
// named variants. Torch-free: layers, sizes and names of all tensors follow from it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/model_shape.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/preset.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

inline constexpr std::int64_t kImageChannels = 3;
inline constexpr std::size_t kStages = 3;  // each halves height and width

struct TaehvConfig {
  /// Three decoders are published. `wide`: MemBlocks of grouped convolutions; `super`: of depthwise
  /// ones of 7 x 7, and with a pixel shuffle where the others repeat pixels.
  enum class Decoder { plain, wide, super };

  std::int64_t patch = 1;  // pixels of a square that are folded into channels
  std::int64_t latent_channels = 16;
  std::int64_t encoder_width = 64;
  Decoder decoder = Decoder::plain;
  std::array<std::int64_t, kStages + 1> decoder_widths{256, 128, 64, 64};
  std::array<bool, kStages> halves_time{true, true, false};   // of the encoder
  std::array<bool, kStages> doubles_time{false, true, true};  // of the decoder
  bool operator==(const TaehvConfig&) const = default;

  /// Frames for one latent.
  std::int64_t frames_of_latent() const;
  /// Frames that the decoder makes first and nobody sees: they are of before the video.
  std::int64_t frames_to_trim() const;
  /// Height and width are multiples of it.
  std::int64_t pixels_of_latent() const { return patch << kStages; }
};

struct TaehvLayer {
  enum class Kind {
    clamp,  // 3 tanh(x / 3)
    relu,
    conv,          // padded to the same size; `stride` in height and width, or of what `doubles`
    memory,        // MemBlock: three convolutions over the frame and the one before it
    wide_memory,   // the same of four, 1 x 1 and grouped 3 x 3 in turn
    super_memory,  // depthwise 7 x 7, then 1 x 1 to four times the channels and back
    pool,          // TPool: `stride` frames become one, by a 1 x 1 convolution
    grow,          // TGrow: one frame becomes `stride`
    upsample,      // twice the height and width, by repetition; done by the convolution behind it
    shuffle,       // twice the height and width, of a quarter of the channels
  };
  Kind kind = Kind::relu;
  std::int64_t stride = 1;
  bool has_bias = true;
  bool doubles = false;          // of a conv: it sees its input at twice the height and width
  std::int64_t drops = 0;        // of a grow: first frames of a clip that nobody sees
  std::int64_t weights = 0;      // elements of its convolutions, without biases
  std::size_t first_tensor = 0;  // of TaehvLayers::tensors
  std::size_t tensor_count = 0;

  /// It sees each frame with the one before it.
  bool sees_past() const {
    return kind == Kind::memory || kind == Kind::wide_memory || kind == Kind::super_memory;
  }
};

/// Where the pieces in which a side computes begin: a stage each, with what stands before the first
/// and behind the last.
using TaehvPieces = std::array<std::size_t, kStages>;

struct TaehvLayers {
  std::vector<TaehvLayer> encoder;
  std::vector<TaehvLayer> decoder;
  std::vector<TensorSpec> tensors;  // named as in the published checkpoints
  TaehvPieces encoder_pieces{};
  TaehvPieces decoder_pieces{};
};
TaehvLayers taehv_layers(const TaehvConfig& config);

/// Those of the encoder, then those of the decoder; tensors are indices of TaehvLayers::tensors.
std::vector<ModelBlock> taehv_blocks(const TaehvLayers& layers);

/// What the names of the presets for tests and for a look begin with.
inline constexpr std::string_view kTaehvNano = "taehv-nano";

/// How such models are usually trained.
std::span<const Preset> taehv_presets();
/// The shape of the model of one of them.
TaehvConfig taehv_model(const Preset& preset);

/// Multiplications and additions of the convolutions in one forward pass over one frame of `height`
/// x `width`, encoder and decoder.
double taehv_flops_of_frame(const TaehvConfig& config, std::int64_t height, std::int64_t width);

/// config.json of a checkpoint.
std::string taehv_config_json(const TaehvConfig& config);
ModelShape taehv_shape(const TaehvConfig& config);

}  // namespace tj::trainer
