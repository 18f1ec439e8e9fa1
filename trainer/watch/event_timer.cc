#include "trainer/watch/event_timer.h"

#include "trainer/values/device_stream.h"

namespace tj::trainer {
namespace {
constexpr double kMillisecond = 1e-3;
}

/// Now, in the stream that this thread gives its work to. Torch's own kind of event has no time.
c10::Event EventTimer::marked() {
  if (spare_.empty()) spare_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  auto event = std::move(spare_.back());
  spare_.pop_back();
  event.record(current_stream(device_));
  return event;
}

std::uint64_t EventTimer::begin() {
  const std::scoped_lock lock(mutex_);
  open_.emplace(next_, marked());
  return next_++;
}

void EventTimer::end(std::uint64_t begun, Counted counted) {
  const std::scoped_lock lock(mutex_);
  auto open = open_.extract(begun);
  TORCH_CHECK(!open.empty(), "a section ends once");
  ended_.push_back({.begun = std::move(open.mapped()), .ended = marked(), .counted = counted});
}

std::vector<DeviceTimer::Took> EventTimer::take_ended() {
  const std::scoped_lock lock(mutex_);
  std::vector<Took> took;
  while (!ended_.empty() && ended_.front().ended.query()) {
    auto& first = ended_.front();
    took.push_back(
        {.counted = first.counted, .seconds = first.begun.elapsedTime(first.ended) * kMillisecond});
    spare_.push_back(std::move(first.begun));
    spare_.push_back(std::move(first.ended));
    ended_.pop_front();
  }
  return took;
}

}  // namespace tj::trainer
