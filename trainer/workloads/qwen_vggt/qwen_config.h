// The shape of a Qwen2.5-VL (arXiv 2502.13923), as its config.json says it, and all its tensors.
// Torch-free: sizes and names follow from it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/model_shape.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/tensor_spec.h"
#include "trainer/workloads/qwen_vggt/image_grid.h"
#include "trainer/workloads/qwen_vggt/mrope.h"
#include "trainer/workloads/qwen_vggt/vision_windows.h"

namespace tj::trainer {

/// The language tower. Defaults are those of 3B.
struct QwenText {
  std::int64_t vocabulary = 151'936;
  std::int64_t width = 2048;
  std::int64_t hidden = 11'008;  // width of its MLPs
  std::int64_t layers = 36;
  std::int64_t heads = 16;           // of queries; they divide the width
  std::int64_t key_value_heads = 2;  // each serves heads / key_value_heads of them
  double norm_eps = 1e-6;
  double rotary_base = 1e6;
  std::array<std::int64_t, 3> mrope_sections{16, 24, 24};  // of half a head: time, rows, columns
  std::int64_t positions_max = 128'000;
  bool is_tied = true;  // the head is the embedding
  bool operator==(const QwenText&) const = default;

  std::int64_t head_width() const { return width / heads; }
};

/// The vision tower. Defaults are those of 3B.
struct QwenVision {
  std::int64_t width = 1280;
  std::int64_t hidden = 3420;
  std::int64_t layers = 32;
  std::int64_t heads = 16;
  std::int64_t patch_side = 14;
  std::int64_t merge_side = 2;
  std::int64_t frames_of_patch = 2;
  std::int64_t window_pixels = 112;
  std::vector<std::int64_t> full_layers{7, 15, 23, 31};  // these see whole frames; ascending
  std::int64_t positions_of_second = 2;
  bool operator==(const QwenVision&) const = default;

  std::int64_t head_width() const { return width / heads; }
  std::int64_t merged_width() const { return width * merge_side * merge_side; }
  std::int64_t values_of_patch() const {
    return kColours * frames_of_patch * patch_side * patch_side;
  }
  WindowRule windows() const {
    return {.merge_side = merge_side, .window_tokens = window_pixels / merge_side / patch_side};
  }
};

struct QwenConfig {
  QwenText text;
  QwenVision vision;  // whose tokens have the width of the text
  VisionIds ids;
  bool operator==(const QwenConfig&) const = default;

  MropeRule mrope() const {
    return {.ids = ids,
            .merge_side = vision.merge_side,
            .positions_of_second = vision.positions_of_second};
  }
};

/// "qwen2.5-vl-3b" and "qwen2.5-vl-7b" as published, and "qwen-nano", small enough for tests and to
/// be trained on a CPU. The name is one of these.
QwenConfig qwen_named(std::string_view name);

/// Why no such model can be made, in the words of config.json; empty: it can.
std::string qwen_flaw(const QwenConfig& config);

inline constexpr std::size_t kTensorsOfQwenVisionLayer = 12;
inline constexpr std::size_t kTensorsOfQwenMerger = 5;
inline constexpr std::size_t kTensorsOfQwenLayer = 12;

/// All tensors in the order of the blocks, and where those of each part begin.
struct QwenTensors {
  std::vector<TensorSpec> specs;  // named as the published files name them
  std::size_t patches = 0;
  /// norm, qkv, proj, norm, gate, up, down: of all but the norms weight and bias.
  std::vector<std::size_t> vision_layers;
  std::size_t merger = 0;  // norm; weight and bias of two matrices
  std::size_t words = 0;
  /// norm, q, k, v (weight and bias each), o, norm, gate, up, down.
  std::vector<std::size_t> layers;
  std::size_t norm = 0;
  std::size_t head = 0;  // of a tied one the same as `words`
  std::vector<ModelBlock> blocks;
};

QwenTensors qwen_tensors(const QwenConfig& config);
std::int64_t parameter_count(const QwenConfig& config);
ModelShape qwen_shape(const QwenConfig& config);

}  // namespace tj::trainer
