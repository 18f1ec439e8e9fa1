// libtrainer_video.so: videos by FFmpeg's libraries.
#include <exception>
#include <memory>

#include "trainer/data/video/libav/abi.h"
#include "trainer/data/video/libav/encoder.h"
#include "trainer/data/video/libav/libav_video.h"

extern "C" {
#include <libavutil/log.h>
}

namespace tj::trainer {
namespace {

/// Of decoders that wait to be used again, about.
constexpr std::int64_t kIdleBytesMax = std::int64_t{256} << 20;

VideoLibrary& library() {
  static auto* const all = new VideoLibrary;  // videos may outlive static objects
  return *all;
}

/// Its lines name no file; failures are told by their codes.
void begin() {
  av_log_set_level(AV_LOG_QUIET);
  library().idle_decoders.limit(kIdleBytesMax);
}

bool configure(const VideoSettings* settings, PluginText* said) try {
  begin();
  library().device = HardwareDevice(settings->decoder, settings->device_number);
  library().frames.limit(settings->frame_cache_bytes);
  said->write(library().device.name());
  return true;
} catch (const std::exception& failure) {
  said->write(failure.what());
  return false;
}

void* open(const char* path, VideoInfo* info, PluginText* why) try {
  begin();
  auto video = std::make_unique<LibavVideo>(path, library());
  *info = video->info();
  return video.release();
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

void* open_known(const char* path, const VideoInfo* info) {
  begin();
  return new LibavVideo(path, *info, library());
}

void close(void* video) { delete static_cast<LibavVideo*>(video); }

bool read(void* video, const std::int64_t* frames, std::int64_t count, const VideoRectangle* part,
          unsigned char* rgb, PluginText* why) try {
  static_cast<LibavVideo*>(video)->read({frames, static_cast<std::size_t>(count)}, *part, rgb);
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

void* open_writer(const char* path, const char* format, const VideoInfo* info,
                  PluginText* why) try {
  begin();
  return new LibavEncoder(path, format, *info);
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

bool write(void* writer, const unsigned char* rgb, PluginText* why) try {
  static_cast<LibavEncoder*>(writer)->write(rgb);
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

bool finish(void* writer, PluginText* why) try {
  static_cast<LibavEncoder*>(writer)->finish();
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

void close_writer(void* writer) { delete static_cast<LibavEncoder*>(writer); }

constexpr VideoPlugin kPlugin{.abi = kVideoAbi,
                              .configure = configure,
                              .open = open,
                              .open_known = open_known,
                              .close = close,
                              .read = read,
                              .open_writer = open_writer,
                              .write = write,
                              .finish = finish,
                              .close_writer = close_writer};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::VideoPlugin* trainer_video_plugin() { return &tj::trainer::kPlugin; }
