// Where each token of a conversation stands for Qwen2.5-VL's rotary positions: along time, rows and
// columns at once ("mrope"). Pure: no torch.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {

/// Ids around and in place of what the vision tower makes; in config.json.
struct VisionIds {
  std::int32_t begin = 151652;
  std::int32_t end = 151653;
  std::int32_t image = 151655;  // <|image_pad|>
  std::int32_t video = 151656;  // <|video_pad|>
  bool operator==(const VisionIds&) const = default;
};

/// A picture or a video of one sample.
struct VisionInput {
  VisionGrid grid;
  bool is_video = false;
  float seconds_of_frame = 1;  // of a video: that one row of patches spans ("second_per_grid_ts")
  bool operator==(const VisionInput&) const = default;
};

struct MropeRule {
  VisionIds ids;
  std::int64_t merge_side = 2;
  std::int64_t positions_of_second = 2;  // "tokens_per_second"
};

struct MropePositions {
  std::array<std::vector<std::int64_t>, 3> axes;  // time, rows, columns; each [tokens]
  std::int64_t next = 0;                          // of the token that would come next, on all axes
};

/// Of one sample's tokens without padding; `inputs` in the order of their pads. Text advances all
/// axes alike. A picture's tokens have its rows and columns, and its time stands still; a video's
/// time is its frame's second x positions_of_second, rounded down. What follows stands one behind
/// the largest position so far. Fails with Code::invalid where a run of pads is not as long as its
/// picture, or pads and inputs don't match.
///
/// transformers 5 goes on behind the rows and columns alone: where a video's time runs further than
/// these, positions come twice. Earlier versions and Qwen's own training have the rule of here.
Result<MropePositions> mrope_positions(std::span<const std::int32_t> tokens,
                                       std::span<const VisionInput> inputs, const MropeRule& rule);

}  // namespace tj::trainer
