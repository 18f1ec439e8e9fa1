// How the gradients of a step become the same on all ranks: what a user chose. Torch-free.
#pragma once
#include <cstdint>

namespace tj::trainer {

/// When what ranks have learned becomes the same on all of them.
enum class SyncKind {
  step,    // in each step: its gradients are summed before it changes the weights
  late,    // one step later: the sum of a step is applied at the end of the next one
  local,   // each few steps: weights and moments are averaged
  diloco,  // each few steps: an outer optimizer moves the weights (arXiv 2311.08105)
};

/// Gradients are reduced in buckets of this size, as PyTorch's DistributedDataParallel does.
inline constexpr std::int64_t kGradientBucketBytes = 25 << 20;
/// The first bucket is smaller, so that the wire is in use early.
inline constexpr std::int64_t kFirstBucketBytes = 1 << 20;

struct SyncOptions {
  /// A pass may give no gradient to a parameter, which then counts as zero.
  bool leaves_unused = false;
  std::int64_t bucket_bytes = kGradientBucketBytes;
};

}  // namespace tj::trainer
