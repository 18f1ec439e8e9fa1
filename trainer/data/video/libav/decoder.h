// One opened video of FFmpeg's libraries: its packets, and its frames one after another.
#pragma once
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tj::trainer {

/// What FFmpeg says, in words.
struct VideoError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Freed {
  void operator()(AVFormatContext* it) const { avformat_close_input(&it); }
  void operator()(AVCodecContext* it) const { avcodec_free_context(&it); }
  void operator()(AVFrame* it) const { av_frame_free(&it); }
  void operator()(AVPacket* it) const { av_packet_free(&it); }
  void operator()(SwsContext* it) const { sws_freeContext(it); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

/// When the frames of a file are shown, in the unit of its stream.
struct FrameTimes {
  std::vector<std::int64_t> shown;  // ascending; of all frames
  std::vector<std::int64_t> keys;   // ascending; of those at which decoding may begin
  bool are_known = true;            // false: frames have no times, and are only counted
};

class Decoder {
 public:
  /// Throws VideoError.
  explicit Decoder(const std::string& path);

  int height() const { return codec_->height; }
  int width() const { return codec_->width; }
  /// Reads all packets; nothing else can be done with this decoder then.
  FrameTimes scan();
  /// Goes to where `frame` can be decoded from, unless that is ahead of here anyway.
  void approach(std::int64_t frame, const FrameTimes& times);
  /// Decodes up to it, after approach(), and writes it as RGB. Throws VideoError where it does not
  /// come, or is damaged.
  void decode(std::int64_t frame, const FrameTimes& times, unsigned char* rgb);

 private:
  void seek(std::int64_t time);
  void restart();
  bool next_frame();
  bool is_at(std::int64_t frame, const FrameTimes& times) const;
  bool is_past(std::int64_t frame, const FrameTimes& times) const;
  void write_rgb(unsigned char* rgb);

  std::string path_;
  Owned<AVFormatContext> format_;
  Owned<AVCodecContext> codec_;
  Owned<AVFrame> frame_;
  Owned<AVFrame> rgb_;  // with the room that FFmpeg's kernels write beyond a row
  Owned<AVPacket> packet_;
  Owned<SwsContext> to_rgb_;
  int stream_ = -1;
  bool has_frame_ = false;    // frame_ is decoded
  bool is_at_end_ = false;    // the decoder was told that no more packets come
  std::int64_t number_ = -1;  // of frame_, counted from the start of the file; without times
};

}  // namespace tj::trainer
