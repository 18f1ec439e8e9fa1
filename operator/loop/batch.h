// Runs many requests with a bound on those in flight. The first goes alone: a template that the
// server refuses costs one request and not one per worker. A server that is too busy gets the pause
// that it asks for (Retry-After), and then the same request again.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "operator/loop/alarm.h"
#include "operator/loop/pace.h"

namespace tj {

/// Pauses in a row, without a good answer in between, after which a batch gives up; and the longest
/// that it grants. Beyond them it is the queue that waits, and lets other jobs go on.
inline constexpr int kPausesMax = 5;
inline constexpr std::chrono::milliseconds kPauseMin{100};
inline constexpr std::chrono::milliseconds kPauseMax{10'000};
/// A Retry-After is honoured up to here.
inline constexpr std::chrono::milliseconds kRetryAfterMax{120'000};

struct BatchSize {
  std::size_t count = 0;
  std::size_t width_first = 1;  // until the first good answer; the pace bounds it, too
};

/// How one request ended.
struct RequestEnd {
  bool ok = true;
  std::optional<std::chrono::milliseconds> busy_for;  // not ok: the same again after that
};

/// How a batch ended: with each request done, after a failure, or after too many pauses.
struct BatchEnd {
  std::optional<std::chrono::milliseconds> gave_up_busy_for;
};

/// Starts request `index`; calls `done` once, later or at once.
using StartOne = std::function<void(std::size_t index, std::function<void(RequestEnd)> done)>;

/// After the first failure nothing new is started; `all_done` comes when what is in flight has
/// ended, at once if there is nothing to do. `pace` and `alarm` must outlive the batch, which ends
/// silently when the answers or the alarm's slots are dropped.
void run_batch(const BatchSize& size, Pace& pace, Alarm& alarm, StartOne start,
               std::function<void(BatchEnd)> all_done);

}  // namespace tj
