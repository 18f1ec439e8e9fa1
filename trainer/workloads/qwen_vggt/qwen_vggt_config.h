// A Qwen2.5-VL with or without a frozen VGGT: its presets, its tensors and blocks, its config.json
// and what it costs.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/workload/preset.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"
#include "trainer/workloads/qwen_vggt/geometry.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"
#include "trainer/workloads/qwen_vggt/vggt.h"

namespace tj::trainer {

/// The VGGT that a model sees through, and how.
struct Coupling {
  VggtConfig vggt;
  std::string file;  // of its weights; empty: they are random, always the same
  FrameSight sight = FrameSight::earlier;
  double weight = 0.2;         // with which its tokens are added
  std::int64_t hidden = 4096;  // between the two matrices
  bool operator==(const Coupling&) const = default;
};

struct QwenVggtConfig {
  QwenConfig qwen;
  std::optional<Coupling> coupling;  // absent: a Qwen2.5-VL alone
  bool operator==(const QwenVggtConfig&) const = default;

  /// Needs a coupling.
  GeometryConfig geometry() const;
};

std::span<const Preset> qwen_vggt_presets();
/// Of one of them, as if it were to be trained without further flags.
QwenVggtConfig qwen_vggt_model(const Preset& preset);
bool is_nano(const Preset& preset);
/// Ids of the tokens that begin and end a turn: Qwen's, or of a nano its own.
ChatIds chat_ids(const QwenConfig& config);

/// All trained tensors in the order of the blocks.
struct QwenVggtTensors {
  std::vector<TensorSpec> specs;
  std::size_t geometry = 0;        // where those of the coupling begin
  std::size_t geometry_count = 0;  // 0: there are none
  std::size_t geometry_block = 0;
  std::vector<ModelBlock> blocks;
};
QwenVggtTensors qwen_vggt_tensors(const QwenVggtConfig& config);
ModelShape qwen_vggt_shape(const QwenVggtConfig& config);

/// Of a Qwen2.5-VL, as transformers loads it, with what belongs to the coupling beside it.
std::string qwen_vggt_config_json(const QwenVggtConfig& config);
/// Fails with Code::invalid, and names the file.
Result<QwenVggtConfig> qwen_vggt_config_from(const std::string& text,
                                             const std::filesystem::path& file);
/// preprocessor_config.json, as transformers reads it.
std::string preprocessor_json(const PatchRule& rule);
/// What such a file, or one of videos, says of patches and colours must be what this trainer does
/// by `rule`; what it leaves out is. Fails with Code::invalid, and names the file, the field, its
/// value and what would be right.
Result<void> check_patches(const std::string& text, const std::filesystem::path& file,
                           const PatchRule& rule);
/// The bounds of a picture's pixels that such a file says, in either of the ways of transformers;
/// absent: none.
struct PixelBounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
};
std::optional<PixelBounds> pixel_bounds_from(const std::string& text);

inline constexpr const char* kPreprocessorFile = "preprocessor_config.json";
inline constexpr const char* kVideoPreprocessorFile = "video_preprocessor_config.json";
/// video_preprocessor_config.json, as transformers reads it.
std::string video_preprocessor_json(const PatchRule& rule, const SeenFrames& seen);
/// What such a file says of frames, what it leaves out as SeenFrames has it; absent: what no flags
/// could say.
std::optional<SeenFrames> seen_frames_from(const std::string& text);

/// Matrix products and attention of a forward pass over such a sample.
double qwen_vggt_flops(const QwenVggtConfig& config, const ConversationSize& size);

}  // namespace tj::trainer
