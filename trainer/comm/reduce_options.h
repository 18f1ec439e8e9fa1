// How the gradients of a step become the same on all ranks: what a user chose. Torch-free.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tj::trainer {

/// When what ranks have learned becomes the same on all of them.
enum class SyncKind {
  step,    // in each step: its gradients are summed before it changes the weights
  late,    // one step later: the sum of a step is applied at the end of the next one
  local,   // each few steps: weights and moments are averaged
  diloco,  // each few steps: an outer optimizer moves the weights (arXiv 2311.08105)
};

class ReduceMemory;

/// Gradients are reduced in buckets of this size, as PyTorch's DistributedDataParallel does.
inline constexpr std::int64_t kGradientBucketBytes = 25 << 20;
/// The first bucket is smaller, so that the wire is in use early.
inline constexpr std::int64_t kFirstBucketBytes = 1 << 20;

/// What gradients are on the wire.
enum class Codec { fp32, bf16, fp16, int8, powersgd };
/// The names of --reduce: "fp32", "bf16", "fp16", "int8", "powersgd".
const char* to_string(Codec codec);
std::optional<Codec> codec_from(std::string_view name);
/// What the wire does not carry is owed to the next step: an error on each rank, and in
/// checkpoints.
constexpr bool has_feedback(Codec codec) {
  return codec == Codec::int8 || codec == Codec::powersgd;
}

/// fp16 and int8 have a scale for so many elements.
inline constexpr std::int64_t kReduceBlockElements = 1024;

inline constexpr int kReduceRankMax = 64;
/// With Adam rank 4, torch's default, learns several per cent worse at the widths of 128 and 256
/// that were measured (docs/measurements.md), and rank 16 within 1 % of the exact reduction.
inline constexpr int kReduceRankDefault = 16;
/// Whether PowerSGD sends a matrix as two factors: where both together have at most half of its
/// elements, as in torch's powerSGD_hook.py (min_compression_rate).
constexpr bool is_worth_factors(std::size_t rows, std::size_t columns, std::size_t rank) {
  return (rows + columns) * rank * 2 < rows * columns;
}
/// A cosine below which a codec is given up. Rounding leaves 0.99 and more. PowerSGD pays in later
/// steps what it leaves out, so that a single step may differ much: its bound is for what is
/// broken.
inline constexpr double kCheckMinOfRounding = 0.9;
inline constexpr double kCheckMinOfPowerSgd = 0.05;
/// So many first steps of a run PowerSGD reduces exactly, as its gradients change the most.
inline constexpr std::int64_t kPowerSgdExactSteps = 10;

struct ReduceOptions {
  Codec codec = Codec::fp32;
  int rank = kReduceRankDefault;   // of PowerSGD's matrices
  std::int64_t check_every = 100;  // steps; 0: never
  double check_min = kCheckMinOfRounding;
  std::uint64_t seed = 0;  // of PowerSGD's first factors
};

struct SyncOptions {
  /// A pass may give no gradient to a parameter, which then counts as zero.
  bool leaves_unused = false;
  std::int64_t bucket_bytes = kGradientBucketBytes;
  ReduceOptions reduce = {};
  /// Of these parameters; needed by all codecs but fp32, and outlives the sync.
  ReduceMemory* memory = nullptr;
};

}  // namespace tj::trainer
