#include "trainer/workload/side_work.h"

#include <torch/types.h>

#include <c10/core/StreamGuard.h>

#include <utility>

#include "trainer/values/device_stream.h"

namespace tj::trainer {

SideWork::SideWork(c10::Device device)
    : device_(device),
      stream_(device.is_cpu() ? std::nullopt : std::optional(side_stream(device))) {}

SideWork::Begun SideWork::begin(at::TensorList inputs,
                                const std::function<std::vector<at::Tensor>()>& work) const {
  if (!stream_) return {.made = work()};
  event_in(current_stream(device_)).block(*stream_);
  // Their memory must not be given out again before this stream is done with it.
  for (const auto& input : inputs) input.record_stream(*stream_);
  const c10::StreamGuard beside(*stream_);
  Begun begun{.made = work()};
  begun.done.emplace(event_in(*stream_));
  return begun;
}

std::vector<at::Tensor> SideWork::take(Begun begun) const {
  if (!begun.done) return std::move(begun.made);
  const auto training = current_stream(device_);
  begun.done->block(training);
  for (const auto& tensor : begun.made) tensor.record_stream(training);
  return std::move(begun.made);
}

}  // namespace tj::trainer
