// How many requests of one batch may be in flight, and from when on, judged by the server's
// answers. One for the operator: a server that is too busy for one job is so for the next. It grows
// by one with each good answer and is halved when the server asks for a pause (additive increase,
// multiplicative decrease: RFC 5681, section 3.1). Pure; time is passed in.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>

#include "operator/loop/work_queue.h"

namespace tj {

class Pace {
 public:
  explicit Pace(std::size_t width_max) : width_max_(width_max), width_(width_max) {}

  std::size_t width() const { return width_; }
  /// Nothing is started before.
  SteadyTime resume_at() const { return resume_at_; }
  /// Which round a request belongs to that is started now. Requests in flight together hear of the
  /// same pause, which must halve the width once.
  unsigned long long round() const { return round_; }

  /// Tells batches apart.
  unsigned long long next_number() { return number_++; }

  void went_well() { width_ = std::min(width_ + 1, width_max_); }
  void was_refused(unsigned long long round, SteadyTime now, std::chrono::milliseconds pause) {
    resume_at_ = std::max(resume_at_, now + pause);
    if (round != round_) return;
    ++round_;
    width_ = std::max<std::size_t>(width_ / 2, 1);
  }

 private:
  std::size_t width_max_;
  std::size_t width_;
  SteadyTime resume_at_{};
  unsigned long long round_ = 0;
  unsigned long long number_ = 0;
};

}  // namespace tj
