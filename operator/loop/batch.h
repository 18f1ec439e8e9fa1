// Runs many requests with a bound on those in flight. A slow start doubles the width with each
// round of good answers, so that a template that the server refuses costs one request and not one
// per worker (client-go's and the Job controller's slowStartBatch, without its barrier between
// rounds).
#pragma once
#include <cstddef>
#include <functional>

namespace tj {

struct BatchSize {
  std::size_t count = 0;
  std::size_t width_first = 1;
  std::size_t width_max = 1;
};

/// Starts request `index`; calls `done` once, later or at once: true if it went well.
using StartOne = std::function<void(std::size_t index, std::function<void(bool)> done)>;

/// After the first failure nothing new is started; `all_done` comes when what is in flight has
/// ended, at once if there is nothing to do.
void run_batch(const BatchSize& size, StartOne start, std::function<void()> all_done);

}  // namespace tj
