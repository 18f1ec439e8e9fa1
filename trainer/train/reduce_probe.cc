#include "trainer/train/reduce_probe.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>

#include "trainer/comm/agreement.h"

namespace tj::trainer {
namespace {

constexpr int kTries = 5;
constexpr std::int64_t kSmallBytes = 256 << 10;
constexpr std::int64_t kLargeBytes = 4 << 20;
constexpr double kFastSeconds = 0.05;  // of the small one: then the large one takes no second

/// The shortest of several: what disturbs makes them longer.
double seconds_of(Communicator& communicator, std::int64_t bytes, int tries) {
  auto tensor = torch::zeros({std::max<std::int64_t>(1, bytes / 4)});
  double shortest = 0;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const auto begun = std::chrono::steady_clock::now();
    communicator.all_reduce_sum(tensor);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    shortest = attempt == 0 ? taken.count() : std::min(shortest, taken.count());
  }
  return shortest;
}

}  // namespace

ReduceProfile probe_reduction(Communicator& communicator, double backward_seconds) {
  const double ranks = communicator.world_size();
  const auto mean = [&](double mine) { return sum_over_ranks(communicator, {mine})[0] / ranks; };
  const double latency = mean(seconds_of(communicator, 4, kTries));
  std::int64_t bytes = kSmallBytes;
  double seconds = mean(seconds_of(communicator, bytes, 2));
  if (seconds < kFastSeconds) {  // the same number, and so the same answer, on all ranks
    bytes = kLargeBytes;
    seconds = mean(seconds_of(communicator, bytes, 2));
  }
  return {.latency_seconds = latency,
          .seconds_per_byte = std::max(0.0, seconds - latency) / static_cast<double>(bytes),
          .backward_seconds = mean(backward_seconds)};
}

}  // namespace tj::trainer
