#include "trainer/data/video/video_plugin.h"

#include <dlfcn.h>

#include <string>

#include "trainer/process/missing_library.h"
#include "trainer/process/program_folder.h"

namespace tj::trainer {
namespace {

Error not_loaded(const std::filesystem::path& path, std::string message) {
  return {.code = Code::not_found, .message = std::move(message), .subject = path.string()};
}

/// By dlerror()'s words: the plug-in itself, one of FFmpeg's libraries, or another trouble.
std::string why_not_loaded(const std::filesystem::path& plugin, const std::string& words) {
  const auto missing = missing_library(words);
  if (missing == plugin.string())
    return "is missing; it must lie beside trainer-engine, with FFmpeg's libraries (Debian: "
           "libavformat59, libavcodec59, libswscale6): videos need them, PPM pictures don't";
  if (missing)
    return "can't be loaded: " + *missing +
           ", which it needs, is missing (Debian: " + debian_package_of(*missing) +
           "); videos need FFmpeg's libraries, PPM pictures don't";
  return "can't be loaded: " + words + "; it must be of the same build as trainer-engine";
}

}  // namespace

std::filesystem::path default_video_plugin() { return program_folder() / "libtrainer_video.so"; }

Result<const VideoPlugin*> load_video_plugin(const std::filesystem::path& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const words = ::dlerror();
    return not_loaded(path, why_not_loaded(path, words == nullptr ? "no cause given" : words));
  }
  using Factory = const VideoPlugin* (*)();
  const auto factory = reinterpret_cast<Factory>(::dlsym(library, kVideoFactory));
  if (factory == nullptr || factory()->abi != kVideoAbi)
    return not_loaded(path, "must be of the same build as trainer-engine");
  return factory();
}

}  // namespace tj::trainer
