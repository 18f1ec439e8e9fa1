#include "trainer/data/video/libav/decoder.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include <libavutil/error.h>
#include <libavutil/pixdesc.h>
}

namespace tj::trainer {
namespace {

[[noreturn]] void fail(const std::string& what) { throw VideoError(what); }

std::string words_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

int checked(int code, const char* what) {
  if (code < 0) fail(std::string(what) + ": " + words_of(code));
  return code;
}

Owned<AVFormatContext> opened(const std::string& path) {
  AVFormatContext* format = nullptr;
  checked(avformat_open_input(&format, path.c_str(), nullptr, nullptr), "is no video");
  return Owned<AVFormatContext>(format);
}

/// Matrix and range as the stream says them, and as ffmpeg takes them where it does not.
void tell_colours(SwsContext* to_rgb, const AVFrame& frame) {
  const int* const table = sws_getCoefficients(
      frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : frame.colorspace);
  int *from = nullptr, *to = nullptr;
  int from_range = 0, to_range = 0, brightness = 0, contrast = 0, saturation = 0;
  if (sws_getColorspaceDetails(to_rgb, &from, &from_range, &to, &to_range, &brightness, &contrast,
                               &saturation) < 0)
    return;  // no conversion of colours
  const bool is_full = frame.color_range == AVCOL_RANGE_JPEG ||
                       (frame.color_range == AVCOL_RANGE_UNSPECIFIED && from_range != 0);
  sws_setColorspaceDetails(to_rgb, table, is_full ? 1 : 0, to, to_range, brightness, contrast,
                           saturation);
}

}  // namespace

Decoder::Decoder(const std::string& path)
    : path_(path), format_(opened(path)), frame_(av_frame_alloc()), packet_(av_packet_alloc()) {
  checked(avformat_find_stream_info(format_.get(), nullptr), "has no readable streams");
  const AVCodec* codec = nullptr;
  stream_ = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (stream_ < 0) fail("has no video stream that can be decoded: " + words_of(stream_));
  for (unsigned i = 0; i < format_->nb_streams; ++i)
    if (static_cast<int>(i) != stream_) format_->streams[i]->discard = AVDISCARD_ALL;
  codec_.reset(avcodec_alloc_context3(codec));
  checked(avcodec_parameters_to_context(codec_.get(), format_->streams[stream_]->codecpar),
          "has no usable parameters");
  codec_->pkt_timebase = format_->streams[stream_]->time_base;
  codec_->thread_count = 1;  // batches are read by threads already
  checked(avcodec_open2(codec_.get(), codec, nullptr), "can't be decoded");
  if (codec_->width < 1 || codec_->height < 1) fail("says no width and height");
}

FrameTimes Decoder::scan() {
  FrameTimes times;
  while (true) {
    const int code = av_read_frame(format_.get(), packet_.get());
    if (code == AVERROR_EOF) break;
    checked(code, "can't be read to its end");
    const auto& packet = *packet_;
    const bool is_shown =
        packet.stream_index == stream_ && (packet.flags & AV_PKT_FLAG_DISCARD) == 0;
    if (is_shown) {
      if (packet.pts == AV_NOPTS_VALUE) times.are_known = false;
      times.shown.push_back(packet.pts);
      if ((packet.flags & AV_PKT_FLAG_KEY) != 0) times.keys.push_back(packet.pts);
    }
    av_packet_unref(packet_.get());
  }
  if (times.shown.empty()) fail("has no frames");
  std::ranges::sort(times.shown);
  std::ranges::sort(times.keys);
  // Two frames at one time can't be told apart by it.
  if (std::ranges::adjacent_find(times.shown) != times.shown.end() || times.keys.empty())
    times.are_known = false;
  return times;
}

void Decoder::seek(std::int64_t time) {
  checked(av_seek_frame(format_.get(), stream_, time, AVSEEK_FLAG_BACKWARD), "can't be searched");
  avcodec_flush_buffers(codec_.get());
  has_frame_ = is_at_end_ = false;
}

/// From the first frame on: opened anew, since not every format can go back.
void Decoder::restart() { *this = Decoder(path_); }

bool Decoder::is_at(std::int64_t frame, const FrameTimes& times) const {
  if (!has_frame_) return false;
  return times.are_known ? frame_->pts == times.shown[static_cast<std::size_t>(frame)]
                         : number_ == frame;
}

bool Decoder::is_past(std::int64_t frame, const FrameTimes& times) const {
  if (!has_frame_) return false;
  return times.are_known ? frame_->pts > times.shown[static_cast<std::size_t>(frame)]
                         : number_ > frame;
}

void Decoder::approach(std::int64_t frame, const FrameTimes& times) {
  if (!times.are_known) {
    if (is_past(frame, times) || is_at_end_) restart();
    return;
  }
  const auto time = times.shown[static_cast<std::size_t>(frame)];
  const auto after = std::ranges::upper_bound(times.keys, time);
  const auto key = after == times.keys.begin() ? times.keys.front() : *std::prev(after);
  const bool is_ahead = has_frame_ && frame_->pts <= time && frame_->pts >= key;
  if (is_ahead) return;
  seek(key);
  if (!next_frame() || is_past(frame, times)) restart();  // a format that seeks beside the mark
}

/// False at the end of the file.
bool Decoder::next_frame() {
  has_frame_ = false;
  while (true) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code >= 0) {
      ++number_;
      return has_frame_ = true;
    }
    if (code == AVERROR_EOF) return false;
    if (code != AVERROR(EAGAIN)) checked(code, "is damaged");
    if (is_at_end_) return false;
    const int read = av_read_frame(format_.get(), packet_.get());
    if (read == AVERROR_EOF) {
      is_at_end_ = true;
      checked(avcodec_send_packet(codec_.get(), nullptr), "is damaged");
      continue;
    }
    checked(read, "can't be read");
    const int sent =
        packet_->stream_index == stream_ ? avcodec_send_packet(codec_.get(), packet_.get()) : 0;
    av_packet_unref(packet_.get());
    checked(sent, "is damaged");
  }
}

void Decoder::decode(std::int64_t frame, const FrameTimes& times, unsigned char* rgb) {
  while (!is_at(frame, times)) {
    const bool comes = !is_past(frame, times) && next_frame();
    if (!comes) fail("has no frame " + std::to_string(frame) + " where its packets say one");
  }
  const bool is_damaged =
      frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
  if (is_damaged) fail("is damaged at frame " + std::to_string(frame));
  write_rgb(rgb);
}

void Decoder::write_rgb(unsigned char* rgb) {
  const auto& frame = *frame_;
  if (frame.width != codec_->width || frame.height != codec_->height)
    fail("changes its size to " + std::to_string(frame.width) + " x " +
         std::to_string(frame.height));
  const bool is_new = !to_rgb_;
  to_rgb_.reset(sws_getCachedContext(
      to_rgb_.release(), frame.width, frame.height, static_cast<AVPixelFormat>(frame.format),
      frame.width, frame.height, AV_PIX_FMT_RGB24, SWS_BICUBIC, nullptr, nullptr, nullptr));
  if (!to_rgb_) fail("has pixels that can't be converted to RGB");
  if (is_new) tell_colours(to_rgb_.get(), frame);
  if (!rgb_) {
    rgb_.reset(av_frame_alloc());
    rgb_->format = AV_PIX_FMT_RGB24;
    rgb_->width = frame.width;
    rgb_->height = frame.height;
    checked(av_frame_get_buffer(rgb_.get(), 0), "is too large");
  }
  checked(sws_scale(to_rgb_.get(), frame.data, frame.linesize, 0, frame.height, rgb_->data,
                    rgb_->linesize),
          "can't be converted to RGB");
  const auto row_bytes = static_cast<std::size_t>(3 * frame.width);
  for (int row = 0; row < frame.height; ++row)
    std::memcpy(rgb + static_cast<std::size_t>(row) * row_bytes,
                rgb_->data[0] + static_cast<std::ptrdiff_t>(row) * rgb_->linesize[0], row_bytes);
}

}  // namespace tj::trainer
