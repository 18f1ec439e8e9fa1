// One video that is being written by FFmpeg's libraries: frames one after another, in the memory of
// some of them.
#pragma once
#include <string>

#include "trainer/data/video/libav/abi.h"
#include "trainer/data/video/libav/owned.h"

namespace tj::trainer {

struct OutputFreed {
  void operator()(AVFormatContext* it) const {
    avio_closep(&it->pb);
    avformat_free_context(it);
  }
};

class LibavEncoder {
 public:
  /// Throws VideoError. `format`: "matroska" or "mp4".
  LibavEncoder(const std::string& path, const std::string& format, const VideoInfo& info);

  /// The next frame. Throws VideoError.
  void write(const unsigned char* rgb);
  /// What the codec still holds, and the file's end. Throws VideoError.
  void finish();

 private:
  void open_codec(bool is_lossless, const VideoInfo& info);
  void open_frames();
  void open_file(const std::string& url);
  void send(const AVFrame* frame);

  std::unique_ptr<AVFormatContext, OutputFreed> format_;
  Owned<AVCodecContext> codec_;
  Owned<AVFrame> rgb_;    // with the room that FFmpeg's kernels read beyond a row
  Owned<AVFrame> frame_;  // in the codec's own pixels
  Owned<AVPacket> packet_;
  Owned<SwsContext> from_rgb_;
  AVStream* stream_ = nullptr;  // of format_
  std::int64_t frames_ = 0;     // so many were written
};

}  // namespace tj::trainer
