// A device that decodes in place of the CPU, through libav's own interface to it.
#pragma once
#include <string>

#include "trainer/data/video/libav/owned.h"

namespace tj::trainer {

class HardwareDevice {
 public:
  HardwareDevice() = default;  // none: the CPU
  /// "cpu", a device of libav's ("cuda", "vaapi"), or "auto": the first of these that can be
  /// opened, else the CPU. `number` says which GPU of several it is: CUDA's index, or the render
  /// node. Throws VideoError with libav's words.
  HardwareDevice(const std::string& name, int number);

  /// "cuda", "vaapi"; "cpu" without one.
  const std::string& name() const { return name_; }
  /// Before `codec` is opened. What the device can't decode is left to the CPU.
  void decode_for(AVCodecContext& codec, const AVCodec& decoder) const;

 private:
  void open(const std::string& name, int number);
  void open_first(int number);

  std::string name_ = "cpu";
  AVHWDeviceType type_ = AV_HWDEVICE_TYPE_NONE;
  Owned<AVBufferRef> device_;
};

}  // namespace tj::trainer
