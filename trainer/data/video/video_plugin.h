// Brings libtrainer_video.so in, where FFmpeg's libraries are installed.
#pragma once
#include <filesystem>

#include "contract/result.h"
#include "trainer/data/video/libav/abi.h"

namespace tj::trainer {

/// libtrainer_video.so beside this program.
std::filesystem::path default_video_plugin();

/// The plug-in stays loaded for the rest of the process. Fails with Code::not_found and says what
/// is missing.
Result<const VideoPlugin*> load_video_plugin(const std::filesystem::path& path);

}  // namespace tj::trainer
