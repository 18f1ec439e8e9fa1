// One video of FFmpeg's libraries, for many threads: what is known of it, its decoders, and what of
// its frames is kept.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trainer/data/video/libav/abi.h"
#include "trainer/data/video/libav/decoder.h"
#include "trainer/data/video/libav/rgb_converter.h"

namespace tj::trainer {

/// Bytes of something that all videos of the process share.
class ByteBudget {
 public:
  void limit(std::int64_t bytes_max) { bytes_max_ = bytes_max; }
  std::int64_t bytes_max() const { return bytes_max_; }
  bool has_room() const { return bytes_ < bytes_max_; }
  /// False where they would be too many.
  bool take(std::int64_t bytes);
  void give_back(std::int64_t bytes) { bytes_ -= bytes; }

 private:
  std::atomic<std::int64_t> bytes_max_ = 0;
  std::atomic<std::int64_t> bytes_ = 0;
};

/// What all videos of the process share.
struct VideoLibrary {
  HardwareDevice device;
  ByteBudget frames;
  ByteBudget idle_decoders;
  std::atomic<std::int64_t> idle_decoder_count = 0;
  std::atomic<std::int64_t> video_count = 0;
};

class LibavVideo {
 public:
  /// Scans it. Throws VideoError.
  LibavVideo(std::string path, VideoLibrary& library);
  /// Takes what is known of it, and looks at it when it is read.
  LibavVideo(std::string path, const VideoInfo& known, VideoLibrary& library);
  ~LibavVideo();
  LibavVideo(const LibavVideo&) = delete;
  LibavVideo& operator=(const LibavVideo&) = delete;

  /// Its arrays are this object's.
  const VideoInfo& info() const { return info_; }

  /// Throws VideoError for what can't be decoded, whatever is kept here and whatever was read
  /// before.
  void read(std::span<const std::int64_t> frames, const VideoRectangle& part, unsigned char* rgb);

 private:
  /// How the frames on the way to one that is asked for are treated.
  enum class OnTheWay { kept, skipped };
  struct Wanted {
    std::span<const std::int64_t> frames;
    const VideoRectangle& part;
    unsigned char* rgb;
  };
  void look_through(std::unique_ptr<LibavDecoder> decoder);
  void read(const Wanted& wanted, OnTheWay others);
  FrameRun run_of(const Wanted& wanted, OnTheWay others);
  std::unique_ptr<LibavDecoder> decoder_for(std::int64_t frame);
  std::unique_ptr<LibavDecoder> take_idle(std::int64_t frame);
  std::unique_ptr<LibavDecoder> open_decoder();
  void give_back(std::unique_ptr<LibavDecoder> decoder);
  std::shared_ptr<const AVFrame> kept(std::int64_t frame);
  void keep(std::int64_t number, const AVFrame& frame);
  std::int64_t idle_max() const;
  std::int64_t decoder_bytes() const;

  const std::string path_;
  VideoLibrary& library_;
  VideoInfo info_;
  FrameTimes times_;
  std::mutex mutex_;                    // guards all below
  std::unique_ptr<StreamFacts> facts_;  // stays where it is once it is there
  std::vector<std::unique_ptr<LibavDecoder>> idle_;
  std::unordered_map<std::int64_t, std::shared_ptr<const AVFrame>> kept_;  // by number
};

}  // namespace tj::trainer
