// What trainer-engine and libtrainer_video.so know of each other. The engine runs where FFmpeg's
// libraries are not installed; what needs them lies behind this table.
#pragma once
#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kVideoAbi = 1;
inline constexpr const char* kVideoFactory = "trainer_video_plugin";

struct VideoInfo {
  long long frames = 0;
  int height = 0;  // pixels
  int width = 0;
};

struct VideoPlugin {
  int abi = kVideoAbi;  // stays the first in every version
  /// Reads the whole file once, without decoding it. Null with the cause in `why`.
  void* (*open)(const char* path, VideoInfo* info, PluginText* why) = nullptr;
  void (*close)(void* video) = nullptr;
  /// Frames by ascending numbers, as RGB, one after another. On any thread. False with the cause in
  /// `why`.
  bool (*read)(void* video, const long long* frames, long long count, unsigned char* rgb,
               PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::VideoPlugin*
trainer_video_plugin();
