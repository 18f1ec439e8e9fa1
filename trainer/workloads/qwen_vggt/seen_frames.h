// Which frames of a video a Qwen2.5-VL sees, how large they are, and how far apart in time: the
// rules of its own reader (qwen_vl_utils/vision_process.py: smart_nframes(), fetch_video()). Pure.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {

inline constexpr std::int64_t kSeenFramesMax = 100'000;

/// As flags say. Of a frame's pixels as of all else: once it is resized.
struct SeenFrames {
  double of_second = 2;
  std::int64_t min = 4;   // where a video has so many
  std::int64_t max = 32;  // theirs is 768, of contexts of 128,000 tokens
  std::int64_t pixels_min = 128 * 28 * 28;
  std::int64_t pixels_max = 768 * 28 * 28;
  bool operator==(const SeenFrames&) const = default;
};

/// Their numbers: spread evenly from the first frame to the last, an even number of them; of a
/// video of one frame, that one. `rate`: the video's frames of a second. Needs a frame.
std::vector<std::int64_t> seen_frames(std::int64_t frame_count, double rate,
                                      const SeenFrames& seen);

/// Bounds of the pixels of each of `seen_count` frames, of conversations of `tokens_max`: all
/// together take nine tenths of their tokens at most, as far as pixels_min allows it.
PatchRule rule_of_frames(const PatchRule& pictures, std::int64_t seen_count,
                         std::int64_t tokens_max, const SeenFrames& seen);

/// Seconds from one row of patches to the next ("second_per_grid_ts") where `seen_count` of
/// `frame_count` frames are seen.
float seconds_of_patch(std::int64_t seen_count, std::int64_t frame_count, double rate,
                       const PatchRule& rule);

}  // namespace tj::trainer
