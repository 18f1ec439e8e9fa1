#include "trainer/check/measure.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>

#include "trainer/comm/agreement.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;
using std::chrono::system_clock;

constexpr std::int64_t kProbeBytes = 1 << 20;       // tells how large the real one may be
constexpr std::int64_t kProbeFirstBytes = 1 << 16;  // connections warm up
constexpr double kBucketSecondsMax = 3;             // a slower link is measured with less
constexpr double kRepeatSeconds = 1;
constexpr int kRepeatsMax = 8;
constexpr int kPings = 8;
constexpr double kPairSeconds = 0.1;
constexpr std::int64_t kPairBytesMin = 1 << 16, kPairBytesMax = 16 << 20;

double since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

double wall_seconds() {
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

double process_core_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class Measurement {
 public:
  Measurement(Communicator& communicator, const Accelerator& accelerator, LinkFacts& facts)
      : communicator_(communicator), accelerator_(accelerator), facts_(facts) {}

  void run() {
    timed_all_reduce(kProbeFirstBytes);
    const double probe_s = agreed(timed_all_reduce(kProbeBytes));
    measure_all_reduce(probe_s);
    const double rate = agreed(facts_.bytes_per_second());
    measure_pairs(
        std::clamp(static_cast<std::int64_t>(rate * kPairSeconds), kPairBytesMin, kPairBytesMax));
    for (int rank = 1; rank < std::min(communicator_.world_size(), kPingedMax + 1); ++rank)
      ping(rank);
  }

 private:
  /// What rank 0 has measured, on all ranks.
  double agreed(double mine) {
    return sum_over_ranks(communicator_, {communicator_.rank() == 0 ? mine : 0.0}).front();
  }

  void meet() { sum_over_ranks(communicator_, {0.0}); }

  double timed_all_reduce(std::int64_t bytes) {
    auto options = at::TensorOptions().dtype(at::kFloat);
    if (accelerator_.gpu()) options = options.device(at::kCUDA, *accelerator_.gpu());
    auto tensor = torch::zeros({bytes / 4}, options);
    meet();
    const auto begun = steady_clock::now();
    communicator_.all_reduce_sum(tensor);
    tensor[0].item<float>();  // on a GPU the call only queues
    return since(begun);
  }

  void measure_all_reduce(double probe_s) {
    const double whole_s = probe_s * static_cast<double>(kGradientBucketBytes) / kProbeBytes;
    const double share = std::min(1.0, kBucketSecondsMax / std::max(whole_s, 1e-9));
    const auto bytes = std::max(
        kProbeBytes,
        static_cast<std::int64_t>(share * static_cast<double>(kGradientBucketBytes)) / 4 * 4);
    const double core_s = process_core_seconds();
    std::vector<double> seconds{agreed(timed_all_reduce(bytes))};
    const int repeats =
        std::clamp(static_cast<int>(kRepeatSeconds / seconds.front()), 1, kRepeatsMax);
    for (int repeat = 1; repeat < repeats; ++repeat)
      seconds.push_back(agreed(timed_all_reduce(bytes)));
    facts_.all_reduce_core_s = (process_core_seconds() - core_s) / repeats;
    std::ranges::sort(seconds);
    facts_.all_reduce_bytes = bytes;
    facts_.all_reduce_s = seconds[seconds.size() / 2];
    facts_.transport = accelerator_.gpu() ? "NCCL" : "Gloo";
  }

  /// Neighbours in a ring, as many at once as don't share a rank: (0,1), (2,3), ..., then (1,2),
  /// ..., and last the two ends.
  void measure_pairs(std::int64_t bytes) {
    const int ranks = communicator_.world_size();
    std::vector<double> seconds(static_cast<std::size_t>(ranks));  // by the left one
    for (int turn = 0; turn < 3; ++turn) {
      meet();
      for (int left = 0; left < ranks; ++left) {
        const bool is_last = left == ranks - 1;
        const bool is_on = is_last ? turn == 2 && ranks > 2 : turn == left % 2;
        if (is_on) exchange_timed(left, (left + 1) % ranks, bytes, seconds);
      }
    }
    seconds = sum_over_ranks(communicator_, seconds);
    for (int left = 0; left < ranks; ++left) {
      const double taken = seconds[static_cast<std::size_t>(left)];
      if (taken > 0) {
        facts_.pairs.push_back({.left = left,
                                .right = (left + 1) % ranks,
                                .bytes_per_second = static_cast<double>(bytes) / taken});
      }
    }
  }

  void exchange_timed(int left, int right, std::int64_t bytes, std::vector<double>& seconds) {
    const int self = communicator_.rank();
    if (self != left && self != right) return;
    const auto out = torch::zeros({bytes}, torch::kUInt8);
    auto in = torch::empty_like(out);
    const auto begun = steady_clock::now();
    communicator_.exchange(out, in, self == left ? right : left);
    if (self == left) seconds[static_cast<std::size_t>(left)] = since(begun);
  }

  /// The clock of the answer is taken to be that of half the round trip, as NTP does (RFC 5905,
  /// section 8); the shortest of several is the least uncertain.
  void ping(int rank) {
    const int self = communicator_.rank();
    if (self != 0 && self != rank) return;
    const auto none = torch::empty({0}, torch::kFloat64);
    auto empty = none.clone();
    auto clock = torch::zeros({1}, torch::kFloat64);
    RankFacts best{.rank = rank, .round_trip_s = std::numeric_limits<double>::infinity()};
    for (int turn = 0; turn < kPings; ++turn) {
      if (self == rank) {
        communicator_.exchange(none, clock, 0);
        clock[0] = wall_seconds();
        communicator_.exchange(clock, empty, 0);
        continue;
      }
      const double sent = wall_seconds();
      const auto begun = steady_clock::now();
      communicator_.exchange(clock, empty, rank);
      communicator_.exchange(none, clock, rank);
      const double round_trip_s = since(begun);
      if (round_trip_s >= best.round_trip_s) continue;
      best.round_trip_s = round_trip_s;
      best.clock_offset_s = clock[0].item<double>() - (sent + round_trip_s / 2);
    }
    if (self == 0) facts_.ranks.push_back(best);
  }

  Communicator& communicator_;
  const Accelerator& accelerator_;
  LinkFacts& facts_;
};

}  // namespace

void measure_links(Communicator& communicator, const Accelerator& accelerator, LinkFacts& facts) {
  if (communicator.world_size() > 1) Measurement(communicator, accelerator, facts).run();
}

}  // namespace tj::trainer
