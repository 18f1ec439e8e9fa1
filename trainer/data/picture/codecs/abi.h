// What the programs and libtrainer_picture.so know of each other. The programs run where the
// libraries of JPEG, PNG and WebP are not installed; what needs them lies behind this table. No
// exception crosses it.
#pragma once
#include <cstdint>

#include "trainer/values/plugin_text.h"

namespace tj::trainer {

/// Changes with every change of this file.
inline constexpr int kPictureAbi = 1;
inline constexpr const char* kPictureFactory = "trainer_picture_plugin";

/// More than any camera makes, and what a file of a few bytes may claim to be: 192 MiB as RGB.
inline constexpr std::int64_t kPicturePixelsMax = std::int64_t{64} << 20;

struct PictureInfo {
  std::int64_t height = 0;  // pixels, 1 at least; together at most kPicturePixelsMax
  std::int64_t width = 0;
  char format[8] = {};  // "JPEG", "PNG", "WebP"
};

struct PictureBytes {
  const unsigned char* bytes = nullptr;
  std::int64_t count = 0;
};

struct PicturePlugin {
  int abi = kPictureAbi;  // stays the first in every version
  /// By the file's head alone. False with the cause in `why`.
  bool (*look)(const PictureBytes* file, PictureInfo* info, PluginText* why) = nullptr;
  /// Rows of RGB, 3 x height x width bytes of look(). On any thread. False with the cause in `why`.
  bool (*decode)(const PictureBytes* file, const PictureInfo* info, unsigned char* rgb,
                 PluginText* why) = nullptr;
};

}  // namespace tj::trainer

/// The one symbol of the plug-in. Never null.
extern "C" __attribute__((visibility("default"))) const tj::trainer::PicturePlugin*
trainer_picture_plugin();
