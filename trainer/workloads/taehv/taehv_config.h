// The shape of a TAEHV, the tiny autoencoder for video (github.com/madebyollin/taehv), and its
// named variants. Torch-free: layers, sizes and names of all tensors follow from it.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/model_shape.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/preset.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

inline constexpr std::int64_t kImageChannels = 3;
inline constexpr std::size_t kStages = 3;  // each halves height and width

struct TaehvConfig {
  std::int64_t patch = 1;  // pixels of a square that are folded into channels
  std::int64_t latent_channels = 16;
  std::int64_t encoder_width = 64;
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
    conv,      // 3 x 3, padded by 1; `stride` in height and width
    memory,    // MemBlock: three convolutions over the frame and the one before it
    pool,      // TPool: `stride` frames become one, by a 1 x 1 convolution
    grow,      // TGrow: one frame becomes `stride`
    upsample,  // twice the height and width, by repetition
  };
  Kind kind = Kind::relu;
  std::int64_t in = 0;  // channels
  std::int64_t out = 0;
  std::int64_t stride = 1;
  bool has_bias = true;
  std::size_t first_tensor = 0;  // of taehv_tensors()
  std::size_t tensor_count = 0;
};

struct TaehvLayers {
  std::vector<TaehvLayer> encoder;
  std::vector<TaehvLayer> decoder;
  std::vector<TensorSpec> tensors;  // named as in the published checkpoints
};
TaehvLayers taehv_layers(const TaehvConfig& config);

/// Where the pieces in which each side computes begin: a stage each, with what stands before the
/// first and behind the last.
inline constexpr std::array<std::size_t, kStages> kEncoderPieces{0, 7, 12};
inline constexpr std::array<std::size_t, kStages> kDecoderPieces{0, 9, 15};
/// Those of the encoder, then those of the decoder; tensors are indices of TaehvLayers::tensors.
std::vector<ModelBlock> taehv_blocks(const TaehvLayers& layers);

/// How such models are usually trained.
std::span<const Preset> taehv_presets();
/// The shape of the model of one of them.
TaehvConfig taehv_model(const Preset& preset);

/// Multiplications and additions of one forward pass over one frame of `height` x `width`, encoder
/// and decoder.
double taehv_flops_of_frame(const TaehvConfig& config, std::int64_t height, std::int64_t width);

/// config.json of a checkpoint.
std::string taehv_config_json(const TaehvConfig& config);
ModelShape taehv_shape(const TaehvConfig& config);

}  // namespace tj::trainer
