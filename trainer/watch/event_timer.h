// Times sections on a GPU by events in the stream that trains. Includes torch.
#pragma once
#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

class EventTimer final : public DeviceTimer {
 public:
  /// Needs a device whose events have times, as CUDA's.
  explicit EventTimer(c10::Device device) : device_(device) {}

  std::uint64_t begin() override;
  void end(std::uint64_t begun, Counted counted) override;
  /// In the order of end(); one that the device has not reached holds up those after it.
  std::vector<Took> take_ended() override;

 private:
  struct Ended {
    c10::Event begun;
    c10::Event ended;
    Counted counted;
  };
  c10::Event marked();

  const c10::Device device_;
  std::mutex mutex_;  // guards the rest
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, c10::Event> open_;  // as many as sections are nested
  std::deque<Ended> ended_;                   // of a step or two: a step waits for its device
  std::vector<c10::Event> spare_;
};

}  // namespace tj::trainer
