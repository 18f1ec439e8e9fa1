#include "trainer/workloads/qwen_vggt/seen_frames.h"

#include <algorithm>
#include <cmath>

namespace tj::trainer {
namespace {

constexpr std::int64_t kTogether = 2;  // FRAME_FACTOR
// qwen_vl_utils: VIDEO_TOTAL_PIXELS, of a model's own length; and what lifts the bound of many
// frames above that from below.
constexpr double kTotalShare = 0.9;
constexpr double kLift = 1.05;

std::int64_t even_up_to(std::int64_t count) { return count - count % kTogether; }

}  // namespace

std::vector<std::int64_t> seen_frames(std::int64_t frame_count, double rate,
                                      const SeenFrames& seen) {
  const auto total = static_cast<double>(frame_count);
  const auto least = static_cast<double>(even_up_to(seen.min + kTogether - 1));
  const auto most = static_cast<double>(even_up_to(std::min(seen.max, frame_count)));
  const double wanted = total / rate * seen.of_second;
  const auto count = std::max<std::int64_t>(
      1, even_up_to(static_cast<std::int64_t>(std::min(std::max(wanted, least), most))));
  std::vector<std::int64_t> frames;
  for (std::int64_t i = 0; i < count; ++i) {
    const double place =
        count == 1 ? 0.0
                   : static_cast<double>(i * (frame_count - 1)) / static_cast<double>(count - 1);
    frames.push_back(static_cast<std::int64_t>(std::nearbyint(place)));
  }
  return frames;
}

PatchRule rule_of_frames(const PatchRule& pictures, std::int64_t seen_count,
                         std::int64_t tokens_max, const SeenFrames& seen) {
  auto rule = pictures;
  rule.pixels_min = std::min(seen.pixels_min, seen.pixels_max);
  const auto pixels_of_token = static_cast<double>(rule.side_of_token() * rule.side_of_token());
  const double total = kTotalShare * static_cast<double>(tokens_max) * pixels_of_token;
  const double share =
      total * static_cast<double>(rule.frames_of_patch) / static_cast<double>(seen_count);
  const double lifted = std::floor(kLift * static_cast<double>(rule.pixels_min));
  rule.pixels_max = static_cast<std::int64_t>(
      std::min(static_cast<double>(seen.pixels_max), std::max(share, lifted)));
  return rule;
}

float seconds_of_patch(std::int64_t seen_count, std::int64_t frame_count, double rate,
                       const PatchRule& rule) {
  const double seen_of_second =
      static_cast<double>(seen_count) / static_cast<double>(frame_count) * rate;
  return static_cast<float>(static_cast<double>(rule.frames_of_patch) / seen_of_second);
}

}  // namespace tj::trainer
