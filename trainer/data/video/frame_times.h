// When the frames of a video are shown, and at which of them decoding may begin: kept short, since
// a folder may hold a hundred million frames. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tj::trainer {

/// 48 days at 24 frames a second; what says more is a mistake.
inline constexpr std::int64_t kVideoFramesMax = 100'000'000;
inline constexpr std::int64_t kVideoTimeMax = std::int64_t{1} << 61;  // on either side of 0
inline constexpr std::int64_t kStepDivisorMax = 1'000'000'000;
inline constexpr std::int64_t kStepMax = 10'000'000'000;  // units of time between two

/// Frames of which each comes `step` units after the one before.
struct EvenFrames {
  std::int64_t first_frame = 0;
  std::int64_t time = 0;  // of that frame
  std::int64_t step = 0;
  bool operator==(const EvenFrames&) const = default;
};

/// Of the units of time in which a stream counts, so many for so many frames.
struct FrameStep {
  std::int64_t units = 0;
  std::int64_t frames = 1;
  bool operator==(const FrameStep&) const = default;
};

/// True: no time of a video of kVideoFramesMax frames overflows, and each is later than the last.
bool is_usable(FrameStep step);

/// Times are in units of the stream. One of three kinds: regular (`step`: frame n at start + n x
/// step, rounded as FFmpeg's writers do), runs of even frames, or, without either, none: frames are
/// only counted.
struct FrameTimes {
  std::int64_t frames = 0;
  std::int64_t start = 0;
  std::optional<FrameStep> step;
  std::vector<EvenFrames> runs;    // ascending; the first begins with frame 0
  std::int64_t key_every = 0;      // decoding may begin at each n-th frame; 0: `keys` lists them
  std::vector<std::int64_t> keys;  // numbers of frames, ascending
  bool operator==(const FrameTimes&) const = default;

  bool are_known() const { return step.has_value() || !runs.empty(); }
  /// Needs are_known() and a frame of the video.
  std::int64_t at(std::int64_t frame) const;
  /// The frame that is shown at `time`. Needs are_known().
  std::optional<std::int64_t> number_at(std::int64_t time) const;
  /// The last frame up to this one at which decoding may begin; the first such where none is.
  std::int64_t key_before(std::int64_t frame) const;
};

/// Of the packets of a stream: `shown` is the time of each frame, `keys` of those at which decoding
/// may begin, in any order. `step`: what the stream says of itself, if anything. Where two frames
/// are shown at one time, or none is a key, nothing is known but the number.
FrameTimes frame_times(std::vector<std::int64_t> shown, std::vector<std::int64_t> keys,
                       FrameStep step);

}  // namespace tj::trainer
