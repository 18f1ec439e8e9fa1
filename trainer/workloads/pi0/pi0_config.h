// The shape of a robot policy pi0 or pi05 (arXiv 2410.24164, 2504.16054; openpi), and its named
// presets. Torch-free: sizes and names of all tensors follow from it.
#pragma once
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

inline constexpr std::int64_t kPi0ImageChannels = 3;

/// SigLIP, which makes tokens of an image.
struct Pi0Vision {
  std::int64_t image_side = 224;  // pixels; a multiple of the patch's
  std::int64_t patch_side = 14;
  std::int64_t layers = 27;
  std::int64_t heads = 16;
  std::int64_t width = 1152;
  std::int64_t hidden = 4304;  // width of its MLPs
  bool operator==(const Pi0Vision&) const = default;

  std::int64_t tokens_of_image() const {
    return (image_side / patch_side) * (image_side / patch_side);
  }
};

/// A Gemma. Both towers have as many layers and the same heads, and attend together.
struct Pi0Tower {
  std::int64_t width = 0;
  std::int64_t hidden = 0;
  bool operator==(const Pi0Tower&) const = default;
};

struct Pi0Config {
  /// pi0 has a token for the state, and mixes the time of the flow into the actions; pi05 has the
  /// state in its prompt, and the time in the norms of the expert (adaRMS).
  enum class Kind { pi0, pi05 };

  Kind kind = Kind::pi0;
  Pi0Vision vision;
  std::int64_t layers = 18;
  std::int64_t heads = 8;         // of queries; of keys and values there is one
  std::int64_t head_width = 256;  // even
  Pi0Tower prefix{.width = 2048, .hidden = 16384};
  Pi0Tower expert{.width = 1024, .hidden = 4096};  // widths are even
  std::int64_t vocabulary = 257152;                // PaliGemma's
  std::vector<std::string> cameras{"base_0_rgb", "left_wrist_0_rgb", "right_wrist_0_rgb"};
  std::int64_t prompt_tokens = 48;
  std::int64_t horizon = 50;  // actions of one chunk
  std::int64_t state_width = 32;
  std::int64_t action_width = 32;
  /// Those of an action that the data has; the others fill up, and don't count for the loss.
  std::int64_t actions_counted = 32;
  bool operator==(const Pi0Config&) const = default;

  bool is_pi05() const { return kind == Kind::pi05; }
  std::int64_t prefix_tokens() const {
    return static_cast<std::int64_t>(cameras.size()) * vision.tokens_of_image() + prompt_tokens;
  }
  std::int64_t suffix_tokens() const { return horizon + (is_pi05() ? 0 : 1); }
  std::int64_t values_of_chunk() const { return horizon * actions_counted; }
};

inline constexpr std::size_t kTensorsOfVisionLayer = 16;

/// All tensors in the order of the blocks, and where those of each part begin.
struct Pi0Tensors {
  struct Layer {
    std::size_t prefix = 0;  // norm, q, k, v, o, norm, gate, up, down
    std::size_t expert = 0;  // the same; of pi05 a norm is two
  };
  std::vector<TensorSpec> specs;  // named as in openpi's PyTorch checkpoints
  std::size_t patches = 0;        // weight, bias, positions
  std::vector<std::size_t> vision_layers;
  std::size_t projector = 0;  // SigLIP's last norm: weight, bias; the projector: weight, bias
  std::size_t words = 0;      // the embedding of the tokens
  std::size_t suffix = 0;     // weight and bias of: state (pi0 only), actions, time in, time out
  std::vector<Layer> layers;
  std::size_t head = 0;  // the prefix's last norm, the expert's, and the projection to actions
  std::vector<ModelBlock> blocks;
};

/// Of the last layer of the prefix only keys and values reach the actions: what comes after them is
/// in the files, but frozen, as no gradient ever gets there.
Pi0Tensors pi0_tensors(const Pi0Config& config);
std::int64_t parameter_count(const Pi0Config& config);

/// Multiplications and additions of the matrix products of one forward pass over one sample.
double pi0_flops_of_sample(const Pi0Config& config);

/// How such models are usually trained.
std::span<const Preset> pi0_presets();
/// The shape of the model of one of them.
Pi0Config pi0_model(const Preset& preset);

ModelShape pi0_shape(const Pi0Config& config);

}  // namespace tj::trainer
