// In how large pieces gradients are reduced while backward runs. Small ones begin early and leave
// little for after backward; each costs the latency of the wire. Pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tj::trainer {

/// What the first steps of a run have shown.
struct ReduceProfile {
  double latency_seconds = 0;   // of an all-reduce of next to nothing
  double seconds_per_byte = 0;  // of an all-reduce beyond that
  double backward_seconds = 0;  // of the pass whose backward the reduction goes beside
  bool operator==(const ReduceProfile&) const = default;
};

/// Seconds of reduction that are left when backward is done. `tensor_bytes`: of the gradients in
/// the order in which backward makes them, each taking its share of the time by its size. Buckets
/// are those of torch's Reducer: whole tensors, until a bucket has its size or more
/// (c10d/reducer.cpp, compute_bucket_assignment_by_size), the first one of kFirstBucketBytes; they
/// are reduced one after another.
double exposed_seconds(const ReduceProfile& profile, std::span<const std::int64_t> tensor_bytes,
                       std::int64_t bucket_bytes);

/// Of the powers of two from 1 MiB to 256 MiB the one with the least exposed_seconds(); of those
/// that are as good, within a hundredth of the whole reduction, the largest.
std::int64_t best_bucket_bytes(const ReduceProfile& profile,
                               std::span<const std::int64_t> tensor_bytes);

/// "buckets of 4 MiB: 310 ms of each step's reduction can't be hidden (0.40 ms and 117.0 MB/s on
/// the wire, backward 830 ms)"
std::string bucket_line(const ReduceProfile& profile, std::span<const std::int64_t> tensor_bytes,
                        std::int64_t bucket_bytes);

}  // namespace tj::trainer
