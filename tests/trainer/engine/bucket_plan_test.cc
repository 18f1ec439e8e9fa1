#include "trainer/train/bucket_plan.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr double kGigabit = 1 / 117e6;  // seconds of a byte, in each direction between two ranks

std::vector<std::int64_t> even(std::size_t count, std::int64_t bytes) {
  return std::vector<std::int64_t>(count, bytes);
}

TEST(BucketPlan, what_is_left_after_backward_is_the_last_bucket_of_a_fast_wire) {
  const ReduceProfile profile{
      .latency_seconds = 0, .seconds_per_byte = 1e-9, .backward_seconds = 10};
  // Buckets of 1, 8, 8, 8 and what is left of 32 tensors: 7.
  EXPECT_NEAR(exposed_seconds(profile, even(32, kMib), 8 * kMib), 7 * kMib * 1e-9, 1e-12);
}

TEST(BucketPlan, a_slow_wire_is_busy_from_the_first_bucket_on) {
  const ReduceProfile profile{
      .latency_seconds = 0.5, .seconds_per_byte = 1e-6, .backward_seconds = 2};
  // The first tensor is there after 1 / 4 of backward; buckets of 1, 2 and 1 tensors.
  EXPECT_NEAR(exposed_seconds(profile, even(4, kMib), 2 * kMib),
              2.0 / 4 + 3 * 0.5 + 4 * kMib * 1e-6 - 2, 1e-9);
}

TEST(BucketPlan, a_tensor_is_never_cut) {
  const ReduceProfile profile{
      .latency_seconds = 0, .seconds_per_byte = kGigabit, .backward_seconds = 1};
  // The tied embedding of gpt2-tiny comes last: 103 MB that nothing hides, whatever the size.
  auto tensors = even(98, kMib);
  tensors.push_back(103'000'000);
  for (const std::int64_t mib : {1, 8, 64})
    EXPECT_GT(exposed_seconds(profile, tensors, mib * kMib), 0.999 * 103e6 * kGigabit) << mib;
}

TEST(BucketPlan, the_size_follows_wire_and_backward) {
  struct Row {
    const char* what;
    ReduceProfile profile;
    std::size_t tensors;
    std::int64_t mib;
  };
  const Row rows[] = {
      {"a fast wire with little latency: a small last bucket",
       {.latency_seconds = 1e-5, .seconds_per_byte = 1e-10, .backward_seconds = 1},
       100,
       2},
      {"latency costs more than what a bucket carries: all in one",
       {.latency_seconds = 0.5, .seconds_per_byte = kGigabit, .backward_seconds = 0.1},
       100,
       256},
      {"1 Gbps with 0.5 ms, backward of a second: small buckets begin early",
       {.latency_seconds = 5e-4, .seconds_per_byte = kGigabit, .backward_seconds = 1},
       100,
       2},
      {"1 Gbps with 50 ms: a few buckets",
       {.latency_seconds = 0.05, .seconds_per_byte = kGigabit, .backward_seconds = 1},
       100,
       16},
      {"nothing to send: none is better than the other",
       {.latency_seconds = 0, .seconds_per_byte = 0, .backward_seconds = 1},
       0,
       256},
  };
  for (const auto& row : rows)
    EXPECT_EQ(best_bucket_bytes(row.profile, even(row.tensors, kMib)), row.mib * kMib) << row.what;
}

TEST(BucketPlan, the_best_is_as_good_as_any) {
  for (const double latency : {1e-5, 1e-3, 1e-1}) {
    for (const double speed : {1e6, 1e8, 1e10}) {
      const ReduceProfile profile{
          .latency_seconds = latency, .seconds_per_byte = 1 / speed, .backward_seconds = 0.7};
      const auto tensors = even(60, 3 * kMib);
      const auto best = exposed_seconds(profile, tensors, best_bucket_bytes(profile, tensors));
      const double whole = latency + 180.0 * kMib / speed;
      for (const std::int64_t mib : {1, 2, 25, 100, 256})
        EXPECT_LE(best, exposed_seconds(profile, tensors, mib * kMib) + 0.01 * whole + 1e-12);
    }
  }
}

TEST(BucketPlan, the_line_says_what_it_stands_on) {
  const ReduceProfile profile{
      .latency_seconds = 4e-4, .seconds_per_byte = 1e-8, .backward_seconds = 0.83};
  EXPECT_EQ(bucket_line(profile, even(2, 2 * kMib), 4 * kMib),
            "buckets of 4 MiB: 21 ms of each step's reduction can't be hidden (0.40 ms and 100.0 "
            "MB/s on the wire, backward 830 ms)");
}

}  // namespace
}  // namespace tj::trainer
