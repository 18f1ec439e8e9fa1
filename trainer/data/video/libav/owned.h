// What FFmpeg's libraries allocate, freed by its owner.
#pragma once
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/buffer.h>
#include <libswscale/swscale.h>
}

#include <memory>

#include "trainer/data/video/libav/video_error.h"

namespace tj::trainer {

struct Freed {
  void operator()(AVFormatContext* it) const { avformat_close_input(&it); }
  void operator()(AVCodecContext* it) const { avcodec_free_context(&it); }
  void operator()(AVCodecParameters* it) const { avcodec_parameters_free(&it); }
  void operator()(AVFrame* it) const { av_frame_free(&it); }
  void operator()(AVPacket* it) const { av_packet_free(&it); }
  void operator()(AVBufferRef* it) const { av_buffer_unref(&it); }
  void operator()(SwsContext* it) const { sws_freeContext(it); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

}  // namespace tj::trainer
