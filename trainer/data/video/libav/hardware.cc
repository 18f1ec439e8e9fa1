#include "trainer/data/video/libav/hardware.h"

#include <array>
#include <cstdint>
#include <filesystem>

extern "C" {
#include <libavutil/hwcontext.h>
}

namespace tj::trainer {
namespace {

constexpr std::array kInTurn{"cuda", "vaapi"};

/// As libav calls it; empty: what it takes by itself.
std::string place_of(AVHWDeviceType type, int number) {
  if (type == AV_HWDEVICE_TYPE_CUDA) return std::to_string(number);
  constexpr int kFirstNode = 128;  // of the kernel's render nodes
  const std::string node = "/dev/dri/renderD" + std::to_string(kFirstNode + number);
  std::error_code unreadable;
  const bool is_there = type == AV_HWDEVICE_TYPE_VAAPI && std::filesystem::exists(node, unreadable);
  return is_there ? node : "";
}

/// Its pixels on the device where the stream can be decoded there, else those in memory. libav
/// asks; what it may have is known by what stands in the context.
AVPixelFormat chosen_format(AVCodecContext* codec, const AVPixelFormat* offered) {
  const auto on_device = static_cast<AVPixelFormat>(reinterpret_cast<std::intptr_t>(codec->opaque));
  for (const auto* format = offered; *format != AV_PIX_FMT_NONE; ++format)
    if (*format == on_device) return *format;
  return avcodec_default_get_format(codec, offered);
}

}  // namespace

HardwareDevice::HardwareDevice(const std::string& name, int number) {
  if (name == "auto") {
    open_first(number);
  } else if (name != "cpu") {
    open(name, number);
  }
}

void HardwareDevice::open_first(int number) {
  for (const auto* each : kInTurn) {
    try {
      return open(each, number);
    } catch (const VideoError&) {  // the next one, or none
    }
  }
}

void HardwareDevice::open(const std::string& name, int number) {
  const auto type = av_hwdevice_find_type_by_name(name.c_str());
  if (type == AV_HWDEVICE_TYPE_NONE) throw VideoError("FFmpeg knows no such device");
  AVBufferRef* device = nullptr;
  const auto place = place_of(type, number);
  checked(av_hwdevice_ctx_create(&device, type, place.empty() ? nullptr : place.c_str(), nullptr,
                                 /*flags=*/0),
          "the device can't be opened");
  device_.reset(device);
  type_ = type;
  name_ = name;
}

void HardwareDevice::decode_for(AVCodecContext& codec, const AVCodec& decoder) const {
  if (!device_) return;
  for (int i = 0;; ++i) {
    const auto* const way = avcodec_get_hw_config(&decoder, i);
    if (way == nullptr) return;
    const bool fits =
        way->device_type == type_ && (way->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0;
    if (!fits) continue;
    codec.opaque = reinterpret_cast<void*>(static_cast<std::intptr_t>(way->pix_fmt));
    codec.get_format = chosen_format;
    codec.hw_device_ctx = av_buffer_ref(device_.get());
    return;
  }
}

}  // namespace tj::trainer
