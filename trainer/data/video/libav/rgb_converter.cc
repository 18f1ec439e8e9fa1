#include "trainer/data/video/libav/rgb_converter.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace tj::trainer {
namespace {

/// Of the sizes that parts of one video have: in its middle, and at its right edge.
constexpr std::size_t kScalersMax = 8;
/// Pixels that no kernel of FFmpeg's takes apart: chroma of 16 bytes.
constexpr int kBlock = 32;

/// Those that swscale turns into RGB pixel by pixel, with the chroma sample that lies over it
/// (ff_get_unscaled_swscale: even heights). All others go through its filters.
constexpr std::array kByPixel{AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P,
                              AV_PIX_FMT_YUVJ422P};

int rounded_down(int value, int to) { return value - value % to; }

const AVPixFmtDescriptor& described(int format) {
  const auto* const description = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(format));
  if (description == nullptr) throw VideoError("has pixels of no known kind");
  return *description;
}

/// Where the samples of a plane of `part` begin.
const std::uint8_t* begin_of(const AVFrame& frame, int plane, const VideoRectangle& part) {
  const auto* const data = frame.data[plane];
  if (data == nullptr || (part.top == 0 && part.left == 0)) return data;
  const auto& format = described(frame.format);
  const bool is_chroma = plane == 1 || plane == 2;
  const int row = is_chroma ? part.top >> format.log2_chroma_h : part.top;
  const int column = is_chroma ? part.left >> format.log2_chroma_w : part.left;
  return data + static_cast<std::ptrdiff_t>(row) * frame.linesize[plane] + column;
}

/// Matrix and range as the stream says them, and as ffmpeg takes them where it does not.
void tell_colours(SwsContext* to_rgb, int matrix, int range) {
  const int* const table =
      sws_getCoefficients(matrix == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : matrix);
  int *from = nullptr, *to = nullptr;
  int from_range = 0, to_range = 0, brightness = 0, contrast = 0, saturation = 0;
  if (sws_getColorspaceDetails(to_rgb, &from, &from_range, &to, &to_range, &brightness, &contrast,
                               &saturation) < 0)
    return;  // no conversion of colours
  const bool is_full =
      range == AVCOL_RANGE_JPEG || (range == AVCOL_RANGE_UNSPECIFIED && from_range != 0);
  sws_setColorspaceDetails(to_rgb, table, is_full ? 1 : 0, to, to_range, brightness, contrast,
                           saturation);
}

}  // namespace

VideoRectangle part_to_convert(const AVFrame& frame, const VideoRectangle& part) {
  const VideoRectangle whole{.top = 0, .left = 0, .height = frame.height, .width = frame.width};
  const bool is_by_pixel =
      std::ranges::find(kByPixel, static_cast<AVPixelFormat>(frame.format)) != kByPixel.end() &&
      frame.height % 2 == 0 && frame.width % 2 == 0;
  if (!is_by_pixel) return whole;
  // Always of one size, but at the right edge: a scaler is made for a size.
  const int height = std::min(frame.height, rounded_down(part.height + 3, 2));
  const int width = rounded_down(part.width + 2 * kBlock - 1, kBlock);
  const int top = std::min(rounded_down(part.top, 2), frame.height - height);
  const int left = rounded_down(part.left, kBlock);
  if (left + width <= frame.width)
    return {.top = top, .left = left, .height = height, .width = width};
  // Behind the last whole block the kernels do otherwise.
  if (frame.width % kBlock != 0) return whole;
  return {.top = top, .left = left, .height = height, .width = frame.width - left};
}

void RgbConverter::write(const AVFrame& frame, const VideoRectangle& part, unsigned char* rgb) {
  const auto from = part_to_convert(frame, part);
  auto& scaler = scaler_for({.width = from.width,
                             .height = from.height,
                             .format = frame.format,
                             .matrix = frame.colorspace,
                             .range = frame.color_range});
  std::array<const std::uint8_t*, 4> planes{};
  for (int plane = 0; plane < 4; ++plane)
    planes[static_cast<std::size_t>(plane)] = begin_of(frame, plane, from);
  checked(sws_scale(scaler.context.get(), planes.data(), frame.linesize, 0, from.height,
                    scaler.rgb->data, scaler.rgb->linesize),
          "can't be converted to RGB");
  const auto row_bytes = static_cast<std::size_t>(3 * part.width);
  const auto* place = scaler.rgb->data[0] + 3 * (part.left - from.left);
  for (int row = 0; row < part.height; ++row)
    std::memcpy(
        rgb + static_cast<std::size_t>(row) * row_bytes,
        place + static_cast<std::ptrdiff_t>(row + part.top - from.top) * scaler.rgb->linesize[0],
        row_bytes);
}

RgbConverter::Scaler& RgbConverter::scaler_for(const Kind& kind) {
  const auto found = std::ranges::find(scalers_, kind, &Scaler::kind);
  if (found != scalers_.end()) {
    std::rotate(found, found + 1, scalers_.end());
    return scalers_.back();
  }
  Scaler scaler{.kind = kind, .context = {}, .rgb = Owned<AVFrame>(av_frame_alloc())};
  scaler.context.reset(
      sws_getContext(kind.width, kind.height, static_cast<AVPixelFormat>(kind.format), kind.width,
                     kind.height, AV_PIX_FMT_RGB24, SWS_BICUBIC, nullptr, nullptr, nullptr));
  if (!scaler.context) throw VideoError("has pixels that can't be converted to RGB");
  tell_colours(scaler.context.get(), kind.matrix, kind.range);
  scaler.rgb->format = AV_PIX_FMT_RGB24;
  scaler.rgb->width = kind.width;
  scaler.rgb->height = kind.height;
  checked(av_frame_get_buffer(scaler.rgb.get(), 0), "is too large");
  if (scalers_.size() == kScalersMax) scalers_.erase(scalers_.begin());
  return scalers_.emplace_back(std::move(scaler));
}

}  // namespace tj::trainer
