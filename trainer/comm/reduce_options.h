// How the gradients of a step become the same on all ranks: what a user chose. Torch-free.
#pragma once
#include <cstdint>

namespace tj::trainer {

/// Gradients are reduced in buckets of this size, as PyTorch's DistributedDataParallel does.
inline constexpr std::int64_t kGradientBucketBytes = 25 << 20;

/// In what form gradients cross the wire (--reduce).
enum class Codec { fp32, bf16, fp16, int8, powersgd };

/// int8 has one float32 scale for so many elements.
inline constexpr std::int64_t kInt8ChunkElements = 1024;

struct SyncOptions {
  /// A pass may give no gradient to a parameter, which then counts as zero.
  bool leaves_unused = false;
  std::int64_t bucket_bytes = kGradientBucketBytes;
};

}  // namespace tj::trainer
