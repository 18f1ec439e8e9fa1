// libtrainer_video.so: videos by FFmpeg's libraries.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trainer/data/video/libav/abi.h"
#include "trainer/data/video/libav/decoder.h"

extern "C" {
#include <libavutil/log.h>
}

namespace tj::trainer {
namespace {

/// Decoders of all videos that wait to be used again: each holds a file and some frames.
constexpr int kIdleDecodersMax = 64;
std::atomic<int> idle_decoders{0};

class LibavVideo {
 public:
  explicit LibavVideo(std::string path) : path_(std::move(path)) {
    Decoder decoder(path_);
    info_ = {.height = decoder.height(), .width = decoder.width()};
    times_ = decoder.scan();
    info_.frames = static_cast<long long>(times_.shown.size());
  }
  ~LibavVideo() { idle_decoders -= static_cast<int>(idle_.size()); }
  LibavVideo(const LibavVideo&) = delete;
  LibavVideo& operator=(const LibavVideo&) = delete;

  const VideoInfo& info() const { return info_; }

  /// What a decoder was in when it failed is not used again.
  void read(const long long* frames, long long count, unsigned char* rgb) {
    auto decoder = take();
    for (long long i = 0; i < count; ++i) {
      decoder->approach(frames[i], times_);
      decoder->decode(frames[i], times_, rgb + i * 3 * info_.height * info_.width);
    }
    give_back(std::move(decoder));
  }

 private:
  std::unique_ptr<Decoder> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        auto decoder = std::move(idle_.back());
        idle_.pop_back();
        --idle_decoders;
        return decoder;
      }
    }
    auto decoder = std::make_unique<Decoder>(path_);
    if (decoder->height() != info_.height || decoder->width() != info_.width)
      throw VideoError("is another video than before");
    return decoder;
  }

  void give_back(std::unique_ptr<Decoder> decoder) {
    if (++idle_decoders > kIdleDecodersMax) {
      --idle_decoders;
      return;
    }
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(decoder));
  }

  const std::string path_;
  VideoInfo info_;
  FrameTimes times_;
  std::mutex mutex_;  // guards the one below
  std::vector<std::unique_ptr<Decoder>> idle_;
};

void* open(const char* path, VideoInfo* info, PluginText* why) try {
  av_log_set_level(AV_LOG_QUIET);  // its lines name no file; failures are told by their codes
  auto video = std::make_unique<LibavVideo>(path);
  *info = video->info();
  return video.release();
} catch (const std::exception& failure) {
  why->write(failure.what());
  return nullptr;
}

void close(void* video) { delete static_cast<LibavVideo*>(video); }

bool read(void* video, const long long* frames, long long count, unsigned char* rgb,
          PluginText* why) try {
  static_cast<LibavVideo*>(video)->read(frames, count, rgb);
  return true;
} catch (const std::exception& failure) {
  why->write(failure.what());
  return false;
}

constexpr VideoPlugin kPlugin{.abi = kVideoAbi, .open = open, .close = close, .read = read};

}  // namespace
}  // namespace tj::trainer

const tj::trainer::VideoPlugin* trainer_video_plugin() { return &tj::trainer::kPlugin; }
