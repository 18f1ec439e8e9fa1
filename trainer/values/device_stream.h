// The streams in which a thread gives its work to a device that is not the CPU. Includes torch.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tj::trainer {

/// This thread's.
inline c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

/// One beside it.
inline c10::Stream side_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getNewStream(device);
}

/// Happens when the device has done what `stream` has by now.
inline c10::Event event_in(const c10::Stream& stream) {
  c10::Event event(stream.device_type());
  event.record(stream);
  return event;
}

}  // namespace tj::trainer
