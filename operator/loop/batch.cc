#include "operator/loop/batch.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "contract/result.h"

namespace tj {
namespace {

/// Kept alive by the answers and the alarm it waits for: when those are dropped, so is it.
class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(const BatchSize& size, Pace& pace, Alarm& alarm)
      : size_(size),
        pace_(pace),
        alarm_(alarm),
        number_(pace.next_number()),
        width_(size.width_first) {}

  StartOne start;
  std::function<void(BatchEnd)> all_done;

  void fill() {
    if (filling_) return;  // an answer that came at once: the loop below goes on
    filling_ = true;
    while (has_more() && pause().count() <= 0 && in_flight_ < std::min(width_, pace_.width())) {
      start_next();
    }
    filling_ = false;
    if (has_more() && pause().count() > 0) {
      if (pause() <= kPauseMax && pauses_ <= kPausesMax) {
        return alarm_.set(slot(), pace_.resume_at(), [self = shared_from_this()] { self->fill(); });
      }
      failed_ = true;
      end_.gave_up_busy_for = std::chrono::ceil<std::chrono::milliseconds>(pause());
    }
    if (in_flight_ == 0 && !has_more()) {
      alarm_.cancel(slot());
      all_done(end_);
    }
  }

 private:
  bool has_more() const { return !failed_ && (next_ < size_.count || !again_.empty()); }
  /// What is left of it; not positive: there is none.
  SteadyTime::duration pause() const { return pace_.resume_at() - alarm_.now(); }
  std::string slot() const { return "batch " + std::to_string(number_); }

  void start_next() {
    std::size_t index = next_;
    if (again_.empty()) {
      ++next_;
    } else {
      index = again_.back();
      again_.pop_back();
    }
    ++in_flight_;
    start(index, [self = shared_from_this(), index, round = pace_.round()](RequestEnd end) {
      self->ended(index, round, end);
    });
  }

  void ended(std::size_t index, unsigned long long round, const RequestEnd& end) {
    --in_flight_;
    if (end.ok) {
      pauses_ = 0;
      width_ = size_.count;
      pace_.went_well();
    } else if (end.busy_for) {
      again_.push_back(index);
      if (pause().count() <= 0) ++pauses_;
      pace_.was_refused(round, alarm_.now(), std::clamp(*end.busy_for, kPauseMin, kRetryAfterMax));
    } else {
      failed_ = true;
    }
    fill();
  }

  BatchSize size_;
  Pace& pace_;
  Alarm& alarm_;
  unsigned long long number_;
  std::size_t width_;
  std::size_t next_ = 0;
  std::vector<std::size_t> again_;  // the server was too busy for these
  std::size_t in_flight_ = 0;
  int pauses_ = 0;  // since the last good answer
  bool failed_ = false;
  bool filling_ = false;
  BatchEnd end_;
};

}  // namespace

void run_batch(const BatchSize& size, Pace& pace, Alarm& alarm, StartOne start,
               std::function<void(BatchEnd)> all_done) {
  TJ_CHECK(size.width_first >= 1, "no request would start");
  auto batch = std::make_shared<Batch>(size, pace, alarm);
  batch->start = std::move(start);
  batch->all_done = std::move(all_done);
  batch->fill();
}

}  // namespace tj
