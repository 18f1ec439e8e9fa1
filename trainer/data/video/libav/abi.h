// What the programs and libtrainer_video.so know of each other. The programs run where FFmpeg's
// libraries are not installed; what needs them lies behind this table.
#pragma once
#include <cstdint>

#include "trainer/data/video/frame_times.h"
#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file, or of FrameTimes.
inline constexpr int kVideoAbi = 4;
inline constexpr const char* kVideoFactory = "trainer_video_plugin";

/// FrameTimes as plain numbers; the arrays are the giver's.
struct VideoTimes {
  std::int64_t frames = 0;
  std::int64_t start = 0;
  FrameStep step{.units = 0, .frames = 0};  // frames 0: none
  const EvenFrames* runs = nullptr;
  std::int64_t run_count = 0;
  std::int64_t key_every = 0;
  const std::int64_t* keys = nullptr;
  std::int64_t key_count = 0;
};

struct VideoInfo {
  int height = 0;  // pixels
  int width = 0;
  double seconds = 0;    // from the first frame to the end of the last; 0: not known
  int rate_frames = 0;   // so many frames
  int rate_seconds = 0;  // in so many seconds; 0: not known
  char codec[32] = {};   // "h264"
  VideoTimes times;
};

/// For all videos that are opened after it.
struct VideoSettings {
  std::int64_t frame_cache_bytes = 0;
  const char* decoder = "cpu";  // a device of libav's, or auto
  int device_number = 0;        // of several such devices
};

/// A rectangle of the frames, in pixels; inside of them.
struct VideoRectangle {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

struct VideoPlugin {
  int abi = kVideoAbi;  // stays the first in every version
  /// False with the cause in `said`; true with what decodes there.
  bool (*configure)(const VideoSettings* settings, PluginText* said) = nullptr;
  /// Reads the whole file once, without decoding it. Null with the cause in `why`. The arrays in
  /// `info` are there until close().
  void* (*open)(const char* path, VideoInfo* info, PluginText* why) = nullptr;
  /// The same of a file of which all that is known already: it is not looked at before read(),
  /// which fails where it is another one. Never null.
  void* (*open_known)(const char* path, const VideoInfo* info) = nullptr;
  void (*close)(void* video) = nullptr;
  /// A part of frames by ascending numbers, as RGB, one after another. On any thread. False with
  /// the cause in `why`.
  bool (*read)(void* video, const std::int64_t* frames, std::int64_t count,
               const VideoRectangle* part, unsigned char* rgb, PluginText* why) = nullptr;

  /// Begins a file at `path` for frames of this height, width and rate. `format` is FFmpeg's word
  /// for one of two: "matroska", without a loss by FFV1, or "mp4", by H.264. Null with the cause in
  /// `why`.
  void* (*open_writer)(const char* path, const char* format, const VideoInfo* info,
                       PluginText* why) = nullptr;
  /// The next frame, as RGB. False with the cause in `why`.
  bool (*write)(void* writer, const unsigned char* rgb, PluginText* why) = nullptr;
  /// Writes what is left. The file is whole after a true alone.
  bool (*finish)(void* writer, PluginText* why) = nullptr;
  void (*close_writer)(void* writer) = nullptr;
};

inline VideoTimes view_of(const FrameTimes& times) {
  return {.frames = times.frames,
          .start = times.start,
          .step = times.step.value_or(FrameStep{.units = 0, .frames = 0}),
          .runs = times.runs.data(),
          .run_count = static_cast<std::int64_t>(times.runs.size()),
          .key_every = times.key_every,
          .keys = times.keys.data(),
          .key_count = static_cast<std::int64_t>(times.keys.size())};
}

inline FrameTimes copy_of(const VideoTimes& times) {
  FrameTimes copy{.frames = times.frames, .start = times.start};
  if (times.step.frames > 0) copy.step = times.step;
  copy.runs.assign(times.runs, times.runs + times.run_count);
  copy.key_every = times.key_every;
  copy.keys.assign(times.keys, times.keys + times.key_count);
  return copy;
}

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::VideoPlugin*
trainer_video_plugin();
