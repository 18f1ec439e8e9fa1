// How long an optimizer step takes with its traffic: which part of it hides behind the backward of
// the last pass, and which part all ranks wait for. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/predict/traffic.h"

namespace tj::trainer {

/// As PyTorch's DistributedDataParallel: the first bucket is small, so that the wire begins early.
inline constexpr std::int64_t kFirstBucketBytesPlanned = 1 << 20;

/// What one rank computes, by itself.
struct ComputeTime {
  double forward_s = 0;   // of one pass
  double backward_s = 0;  // of one pass
  double update_s = 0;    // of a step: norm, clipping, AdamW
  double of_step(std::int64_t passes) const {
    return static_cast<double>(passes) * (forward_s + backward_s) + update_s;
  }
};

/// How gradients become the same on all ranks.
struct Reduction {
  Codec codec = Codec::fp32;
  int powersgd_rank = kReduceRankDefault;
  std::int64_t bucket_bytes = kGradientBucketBytes;  // in float32
  /// Float32 gradients that a codec packs and unpacks in a second; 0: it costs nothing.
  double codec_bytes_per_second = 0;
  bool overlaps = true;  // with the backward of the last pass
};

struct StepInputs {
  int ranks = 1;
  std::int64_t passes = 1;  // of a step: --accumulation
  ComputeTime compute = {};
  Link link = {};
  std::vector<Gradient> gradients = {};  // in the order in which backward completes them
  Reduction reduction = {};
  int zero_stage = 0;
  std::optional<int> zero_group = {};  // ranks that share out among themselves; absent: all
  double weight_bytes = 4;             // of one element that ZeRO gathers
  double gradient_bytes = 4;           // and of one that it reduces
  double frozen_bytes = 0;             // gathered from all ranks in each pass, and never reduced
  /// Of what ZeRO-3 gathers if it keeps nothing: all weights twice in each pass.
  double gathered_share = 1;
};

struct StepPrediction {
  double sent_bytes = 0;    // by each rank; it receives as much at the same time
  double frozen_bytes = 0;  // of these, of weights that have no gradient
  double wire_s = 0;        // the wire is busy
  double exposed_s = 0;     // of that, what all ranks wait for
  double slowed_s = 0;      // computing takes longer, since its core serves the wire as well
  double codec_s = 0;       // packing and unpacking
  double compute_s = 0;

  double step_s() const { return compute_s + slowed_s + codec_s + exposed_s; }
  /// Of the time of N ranks, what one rank alone would have needed for its share of the samples.
  double efficiency() const { return step_s() > 0 ? compute_s / step_s() : 1; }
  double exposed_share() const { return step_s() > 0 ? exposed_s / step_s() : 0; }
  /// What the wire would take of the step if nothing of it were hidden.
  double bare_share() const { return wire_s > 0 ? wire_s / (wire_s + compute_s) : 0; }
  bool operator==(const StepPrediction&) const = default;
};

StepPrediction predict_step(const StepInputs& inputs);

/// Gradients that are sent together, once the last of them is complete.
struct Bucket {
  double payload_bytes = 0;
  double ready = 1;  // share of backward
  std::int64_t elements = 0;
};
/// By the rule of PyTorch's compute_bucket_assignment_by_size: closed by the gradient with which it
/// reaches its size, so that a large tensor shares its bucket with those before it.
std::vector<Bucket> buckets_of(std::span<const Gradient> gradients, const Reduction& reduction);

/// A tensor of a model, for the order of backward where nothing was measured.
struct PlannedTensor {
  std::vector<std::int64_t> shape = {};
  bool is_trained = true;
};
/// Tensors that a piece of the model uses, in the order of the forward pass.
using PlannedBlock = std::vector<std::size_t>;
/// Of the trained tensors, in the order in which they are complete: backward goes through the
/// blocks from the last to the first, and a tensor of several blocks is complete after the first of
/// them. A block takes time by the elements of the tensors that no later block uses.
std::vector<Gradient> gradients_by_blocks(std::span<const PlannedTensor> tensors,
                                          std::span<const PlannedBlock> blocks);

}  // namespace tj::trainer
