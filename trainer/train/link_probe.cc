#include "trainer/train/link_probe.h"

#include <sys/resource.h>
#include <torch/types.h>

#include <algorithm>
#include <chrono>

#include "trainer/comm/agreement.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

constexpr std::int64_t kProbeBytes = 1 << 20;  // tells how large the real one may be
constexpr double kSecondsMax = 0.5;            // of the real one
constexpr std::int64_t kNumberBytes = 4;
constexpr int kHops = 4;  // of which the fastest counts

double cpu_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace

AllReduceCost timed_all_reduce(Communicator& communicator, std::int64_t bytes, c10::Device device) {
  auto tensor = torch::zeros({std::max<std::int64_t>(1, bytes / kNumberBytes)},
                             at::TensorOptions().dtype(at::kFloat).device(device));
  sum_over_ranks(communicator, {0.0});  // all are here
  const double cpu_before_s = cpu_seconds();
  const auto begun = steady_clock::now();
  communicator.all_reduce_sum(tensor);
  tensor[0].item<float>();  // on a GPU the call only queues
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  const double cpu_s = cpu_seconds() - cpu_before_s;
  const bool counts = communicator.rank() == 0;
  const auto shared = sum_over_ranks(communicator, {counts ? seconds : 0.0, counts ? cpu_s : 0.0});
  return {.seconds = shared[0], .cpu_s = shared[1]};
}

Link quick_link(Communicator& communicator, c10::Device device) {
  double hops_s = timed_all_reduce(communicator, kNumberBytes, device).seconds;
  for (int turn = 1; turn < kHops; ++turn)
    hops_s = std::min(hops_s, timed_all_reduce(communicator, kNumberBytes, device).seconds);
  const double probe_s =
      std::max(timed_all_reduce(communicator, kProbeBytes, device).seconds, 1e-9);
  constexpr auto kBucket = static_cast<double>(kGradientBucketBytes);
  const double share = std::min(1.0, kSecondsMax / (probe_s * kBucket / kProbeBytes));
  const auto bytes = std::max(kProbeBytes, static_cast<std::int64_t>(share * kBucket));
  const auto cost = timed_all_reduce(communicator, bytes, device);
  const int ranks = communicator.world_size();
  const double sent = ring_bytes(static_cast<double>(bytes), ranks);
  constexpr double kLeast = 0.1;  // of the time belongs to the bytes
  return {.bytes_per_second = sent / std::max(cost.seconds - hops_s, kLeast * cost.seconds),
          .latency_s = hops_s / (2.0 * (ranks - 1)),
          .cpu_s_per_byte = device.is_cpu() ? cost.cpu_s / sent : 0};
}

}  // namespace tj::trainer
