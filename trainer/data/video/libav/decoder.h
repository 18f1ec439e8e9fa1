// One opened video of FFmpeg's libraries: its packets, and its frames one after another.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/video/frame_times.h"
#include "trainer/data/video/libav/hardware.h"
#include "trainer/data/video/libav/owned.h"

namespace tj::trainer {

/// What the first opening of a file has found out; later ones need not read packets for it.
struct StreamFacts {
  Owned<AVCodecParameters> parameters;
  const AVCodec* codec = nullptr;
  int stream = -1;
  bool are_in_header = false;  // of a format that says all of it at the begin of the file
};

/// What a scan tells of a video.
struct VideoScan {
  FrameTimes times;
  double seconds = 0;  // 0: not known
};

/// Frames that are asked for together.
struct FrameRun {
  std::vector<std::int64_t> times;  // of these, ascending
  /// Others may be passed over undecoded where no frame needs them.
  bool skips_others = false;
  /// Told each frame that is decoded, on the way too.
  std::function<void(const AVFrame& frame, std::int64_t number)> passed;
};

class LibavDecoder {
 public:
  /// `device` outlives it; so does `known`, which is null for the first one of a file. Throws
  /// VideoError.
  LibavDecoder(const std::string& path, const HardwareDevice& device, const StreamFacts* known);

  int height() const { return codec_->height; }
  int width() const { return codec_->width; }
  std::string codec() const { return avcodec_get_name(codec_->codec_id); }
  AVRational rate() const;  // frames per second; 0/1: not known
  StreamFacts facts() const;
  /// One picture, not a video.
  bool is_picture() const;
  /// Reads all packets, and is at the end of the file then.
  VideoScan scan();

  /// What is asked for from here on.
  void begin(FrameRun run) { run_ = std::move(run); }
  void end_run();
  /// Frames to decode from here to `frame`; absent where it can't be reached without a seek.
  std::optional<std::int64_t> distance_to(std::int64_t frame, const FrameTimes& times) const;
  /// Goes to where `frame` can be decoded from, unless that is ahead of here anyway.
  void approach(std::int64_t frame, const FrameTimes& times);
  /// Decodes up to it, after approach(). Throws VideoError where it does not come, or is damaged.
  /// The frame is there until the next call.
  const AVFrame& decode(std::int64_t frame, const FrameTimes& times);

 private:
  void probe();
  void open_codec();
  void check_end(std::int64_t packets) const;
  bool seek(std::int64_t time);
  void restart();
  bool next_frame(const FrameTimes& times);
  void send_packet();
  const AVFrame& in_memory();
  void tell_passed(const FrameTimes& times);
  bool is_at(std::int64_t frame, const FrameTimes& times) const;
  bool is_past(std::int64_t frame, const FrameTimes& times) const;

  std::string path_;
  const HardwareDevice* device_;
  const StreamFacts* known_;
  Owned<AVFormatContext> format_;
  Owned<AVCodecContext> codec_;
  Owned<AVFrame> frame_;
  Owned<AVFrame> copied_;  // from a device
  Owned<AVPacket> packet_;
  const AVCodec* decoder_ = nullptr;
  FrameRun run_;
  int stream_ = -1;
  bool can_skip_ = false;
  bool is_fresh_ = true;      // nothing was read yet
  bool has_frame_ = false;    // frame_ is decoded
  bool is_at_end_ = false;    // the decoder was told that no more packets come
  std::int64_t number_ = -1;  // of frame_, counted from the start of the file; without times
  // No frame that was skipped since the last seek is shown later: in this run, in those before.
  std::optional<std::int64_t> skipped_to_, lost_to_;
};

/// Decoded, and without a flaw that the decoder knows of?
bool is_whole(const AVFrame& frame);

}  // namespace tj::trainer
