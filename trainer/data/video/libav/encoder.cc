#include "trainer/data/video/libav/encoder.h"

#include <algorithm>
#include <cstring>

extern "C" {
#include <libavutil/opt.h>
}

namespace tj::trainer {
namespace {

constexpr int kSlicedFrom = 16;         // pixels: what is less high or wide is one slice of FFV1
constexpr const char* kQuality = "18";  // x264's "crf"; at it few people see a loss

/// Neighbouring pixels share their colour where the picture can be halved.
AVPixelFormat pixels_of_h264(const VideoInfo& info) {
  const bool is_even = info.width % 2 == 0 && info.height % 2 == 0;
  return is_even ? AV_PIX_FMT_YUV420P : AV_PIX_FMT_YUV444P;
}

Owned<AVFrame> new_frame(int width, int height, int format) {
  Owned<AVFrame> frame(av_frame_alloc());
  if (!frame) fail("is too large");
  frame->width = width;
  frame->height = height;
  frame->format = format;
  checked(av_frame_get_buffer(frame.get(), 0), "is too large");
  return frame;
}

}  // namespace

LibavEncoder::LibavEncoder(const std::string& path, const std::string& format,
                           const VideoInfo& info)
    : packet_(av_packet_alloc()) {
  const std::string url = "file:" + path;  // a path, whatever stands in it
  AVFormatContext* output = nullptr;
  checked(avformat_alloc_output_context2(&output, nullptr, format.c_str(), url.c_str()),
          "is of no format that can be written");
  format_.reset(output);
  // The same frames make the same file.
  format_->flags |= AVFMT_FLAG_BITEXACT;
  open_codec(format == "matroska", info);
  open_frames();
  open_file(url);
}

void LibavEncoder::open_codec(bool is_lossless, const VideoInfo& info) {
  const AVCodec* const codec = is_lossless ? avcodec_find_encoder(AV_CODEC_ID_FFV1)
                                           : avcodec_find_encoder_by_name("libx264");
  if (codec == nullptr)
    fail(std::string("needs the codec ") + (is_lossless ? "FFV1" : "libx264") +
         ", which FFmpeg's libraries here don't have");
  codec_.reset(avcodec_alloc_context3(codec));
  codec_->width = info.width;
  codec_->height = info.height;
  codec_->sample_aspect_ratio = {1, 1};
  codec_->framerate = {info.rate_frames, info.rate_seconds};
  codec_->time_base = {info.rate_seconds, info.rate_frames};
  codec_->thread_count = 0;  // as many as there are cores
  codec_->flags |= AV_CODEC_FLAG_BITEXACT;
  if ((format_->oformat->flags & AVFMT_GLOBALHEADER) != 0)
    codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (is_lossless) {
    codec_->pix_fmt = AV_PIX_FMT_0RGB32;
    codec_->gop_size = 1;  // a reader may begin at each frame
    codec_->level = 3;     // with checksums
    if (std::min(info.width, info.height) < kSlicedFrom) codec_->slices = 1;
  } else {
    codec_->pix_fmt = pixels_of_h264(info);
    codec_->color_range = AVCOL_RANGE_MPEG;
    codec_->colorspace = AVCOL_SPC_BT709;
    codec_->color_primaries = AVCOL_PRI_BT709;
    codec_->color_trc = AVCOL_TRC_BT709;
    checked(av_opt_set(codec_->priv_data, "crf", kQuality, 0), "has no quality to set");
  }
  checked(avcodec_open2(codec_.get(), codec, nullptr), "can't be encoded");
}

void LibavEncoder::open_frames() {
  const auto& codec = *codec_;
  rgb_ = new_frame(codec.width, codec.height, AV_PIX_FMT_RGB24);
  frame_ = new_frame(codec.width, codec.height, codec.pix_fmt);
  from_rgb_.reset(sws_getContext(
      codec.width, codec.height, AV_PIX_FMT_RGB24, codec.width, codec.height, codec.pix_fmt,
      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, nullptr, nullptr, nullptr));
  if (!from_rgb_) fail("has pixels that can't be converted");
  if (codec.colorspace != AVCOL_SPC_BT709) return;
  constexpr int kNeutral = 1 << 16;  // of contrast and saturation
  const int* const table = sws_getCoefficients(SWS_CS_ITU709);
  checked(sws_setColorspaceDetails(from_rgb_.get(), table, /*srcRange=*/1, table, /*dstRange=*/0,
                                   /*brightness=*/0, kNeutral, kNeutral),
          "has colours that can't be converted");
}

void LibavEncoder::open_file(const std::string& url) {
  stream_ = avformat_new_stream(format_.get(), nullptr);
  if (stream_ == nullptr) fail("has no room for a stream");
  checked(avcodec_parameters_from_context(stream_->codecpar, codec_.get()),
          "has no usable parameters");
  stream_->time_base = codec_->time_base;
  stream_->avg_frame_rate = codec_->framerate;
  checked(avio_open(&format_->pb, url.c_str(), AVIO_FLAG_WRITE), "can't be created");
  checked(avformat_write_header(format_.get(), nullptr), "can't be written");
}

void LibavEncoder::write(const unsigned char* rgb) {
  const auto row_bytes = static_cast<std::size_t>(3 * codec_->width);
  for (int row = 0; row < codec_->height; ++row)
    std::memcpy(rgb_->data[0] + static_cast<std::ptrdiff_t>(row) * rgb_->linesize[0],
                rgb + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  checked(av_frame_make_writable(frame_.get()), "is too large");  // the codec may still have it
  checked(sws_scale(from_rgb_.get(), rgb_->data, rgb_->linesize, 0, codec_->height, frame_->data,
                    frame_->linesize),
          "can't be converted");
  frame_->pts = frames_++;
  send(frame_.get());
}

/// Null: there are no more.
void LibavEncoder::send(const AVFrame* frame) {
  checked(avcodec_send_frame(codec_.get(), frame), "can't be encoded");
  while (true) {
    const int code = avcodec_receive_packet(codec_.get(), packet_.get());
    if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
    checked(code, "can't be encoded");
    if (packet_->duration == 0) packet_->duration = 1;
    av_packet_rescale_ts(packet_.get(), codec_->time_base, stream_->time_base);
    packet_->stream_index = stream_->index;
    checked(av_interleaved_write_frame(format_.get(), packet_.get()), "can't be written");
    checked(format_->pb->error, "can't be written");  // of a write behind our back
  }
}

void LibavEncoder::finish() {
  send(nullptr);
  checked(av_write_trailer(format_.get()), "can't be written");
  avio_flush(format_->pb);
  checked(format_->pb->error, "can't be written");
  checked(avio_closep(&format_->pb), "can't be closed");
}

}  // namespace tj::trainer
