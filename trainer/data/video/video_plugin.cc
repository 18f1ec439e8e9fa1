#include "trainer/data/video/video_plugin.h"

#include <string>

#include "trainer/process/missing_library.h"
#include "trainer/process/plugin.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

std::string without(const std::string& missing, bool is_itself) {
  if (is_itself)
    return "is missing; it must lie beside trainer-engine, with FFmpeg's libraries (Debian: "
           "libavformat59, libavcodec59, libswscale6): videos need them, PPM pictures don't";
  return "can't be loaded: " + missing +
         ", which it needs, is missing (Debian: " + debian_package_of(missing) +
         "); videos need FFmpeg's libraries, PPM pictures don't";
}

}  // namespace

std::filesystem::path default_video_plugin() { return program_folder() / "libtrainer_video.so"; }

Result<const VideoPlugin*> load_video_plugin(const std::filesystem::path& path) {
  return load_plugin<VideoPlugin>(
      {.path = path, .factory = kVideoFactory, .program = "trainer-engine", .without = without},
      kVideoAbi);
}

}  // namespace tj::trainer
