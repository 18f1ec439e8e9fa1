#include "trainer/data/video/frame_times.h"

#include <algorithm>
#include <numeric>

namespace tj::trainer {
namespace {

/// start + n x step, rounded to the nearest as av_rescale_q does; nothing here can overflow within
/// the bounds of the header.
std::int64_t regular_time(std::int64_t start, FrameStep step, std::int64_t frame) {
  const auto whole = step.units / step.frames, rest = step.units % step.frames;
  return start + frame * whole + (frame * rest + step.frames / 2) / step.frames;
}

bool fits(const std::vector<std::int64_t>& shown, FrameStep step) {
  if (!is_usable(step)) return false;
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (regular_time(shown.front(), step, static_cast<std::int64_t>(i)) != shown[i]) return false;
  return true;
}

std::optional<FrameStep> step_of(const std::vector<std::int64_t>& shown, FrameStep told) {
  const FrameStep first{.units = shown.size() > 1 ? shown[1] - shown[0] : 1, .frames = 1};
  if (fits(shown, first)) return first;
  const auto common = std::gcd(told.units, told.frames);
  if (common == 0) return std::nullopt;
  const FrameStep reduced{.units = told.units / common, .frames = told.frames / common};
  return fits(shown, reduced) ? std::optional(reduced) : std::nullopt;
}

std::vector<EvenFrames> runs_of(const std::vector<std::int64_t>& shown) {
  std::vector<EvenFrames> runs;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const bool goes_on = !runs.empty() && i > 0 && shown[i] - shown[i - 1] == runs.back().step;
    if (goes_on) continue;
    const auto step = i + 1 < shown.size() ? shown[i + 1] - shown[i] : 1;
    runs.push_back({.first_frame = static_cast<std::int64_t>(i), .time = shown[i], .step = step});
  }
  return runs;
}

bool are_usable(const std::vector<std::int64_t>& shown) {
  const bool are_distinct = std::ranges::adjacent_find(shown) == shown.end();
  return are_distinct && shown.front() > -kVideoTimeMax && shown.back() < kVideoTimeMax;
}

/// 0 where they are not evenly spaced from the first frame on.
std::int64_t spacing_of(const std::vector<std::int64_t>& keys, std::int64_t frames) {
  const auto every = keys.size() > 1 ? keys[1] : frames;
  if (keys.front() != 0) return 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i] != static_cast<std::int64_t>(i) * every) return 0;
  return (frames - 1) / every + 1 == static_cast<std::int64_t>(keys.size()) ? every : 0;
}

}  // namespace

bool is_usable(FrameStep step) {
  return step.frames >= 1 && step.frames <= kStepDivisorMax && step.units >= step.frames &&
         step.units / step.frames <= kStepMax;
}

std::int64_t FrameTimes::at(std::int64_t frame) const {
  if (step) return regular_time(start, *step, frame);
  const auto after = std::ranges::upper_bound(runs, frame, {}, &EvenFrames::first_frame);
  const auto& run = *std::prev(after);
  return run.time + (frame - run.first_frame) * run.step;
}

std::optional<std::int64_t> FrameTimes::number_at(std::int64_t time) const {
  std::int64_t low = 0, high = frames;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (at(middle) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < frames && at(low) == time ? std::optional(low) : std::nullopt;
}

std::int64_t FrameTimes::key_before(std::int64_t frame) const {
  if (key_every > 0) return frame - frame % key_every;
  const auto after = std::ranges::upper_bound(keys, frame);
  return after == keys.begin() ? keys.front() : *std::prev(after);
}

FrameTimes frame_times(std::vector<std::int64_t> shown, std::vector<std::int64_t> keys,
                       FrameStep step) {
  std::ranges::sort(shown);
  std::ranges::sort(keys);
  FrameTimes times{.frames = static_cast<std::int64_t>(shown.size())};
  if (keys.empty() || !are_usable(shown)) return times;
  for (const auto time : keys)
    times.keys.push_back(std::ranges::lower_bound(shown, time) - shown.begin());
  if (const auto every = spacing_of(times.keys, times.frames); every > 0) {
    times.key_every = every;
    times.keys.clear();
  }
  times.start = shown.front();
  times.step = step_of(shown, step);
  if (!times.step) times.runs = runs_of(shown);
  return times;
}

}  // namespace tj::trainer
