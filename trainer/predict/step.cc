#include "trainer/predict/step.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "trainer/values/flat_layout.h"

namespace tj::trainer {
namespace {

constexpr double kFloatBytes = 4;

/// A reduce-scatter or an all-gather by a ring: half of an all-reduce.
double half_ring_seconds(double bytes, int ranks, const Link& link) {
  return ring_seconds(bytes, ranks, link) / 2;
}

double beyond(double seconds, double hidden) { return std::max(0.0, seconds - hidden); }

/// A backward beside the wire: while the wire is busy it gets on more slowly, by the share of the
/// core that the wire takes.
struct Backward {
  double all_s = 0;       // by itself
  double wire_share = 0;  // of the core, in [0, 1)
  double done_s = 0;      // of all_s
  double now_s = 0;       // since it began; the wire is idle

  void reach(double wanted_s) {
    if (wanted_s <= done_s) return;
    now_s += wanted_s - done_s;
    done_s = wanted_s;
  }
  /// Of that time computing was slowed by so much.
  double beside_wire(double wire_s) {
    const double shared_s = std::min(wire_s, (all_s - done_s) / (1 - wire_share));
    done_s = std::min(all_s, done_s + shared_s * (1 - wire_share));
    now_s += wire_s;
    return shared_s * wire_share;
  }
};

/// What a forward gathers hides behind it, layer by layer: `weights_s` of weights that are trained,
/// which are counted, and those that are frozen.
void add_gathers_of_forward(double weights_s, const StepInputs& inputs, StepPrediction& step) {
  const auto passes = static_cast<double>(inputs.passes);
  const bool is_frozen = inputs.frozen_bytes > 0;
  const double frozen_s =
      is_frozen ? half_ring_seconds(inputs.frozen_bytes, inputs.ranks, inputs.link) : 0;
  step.exposed_s += passes * beyond(weights_s + frozen_s, inputs.compute.forward_s);
  step.wire_s += passes * frozen_s;
  step.frozen_bytes = passes * ring_bytes(inputs.frozen_bytes, inputs.ranks) / 2;
  step.sent_bytes += step.frozen_bytes;
}

/// Buckets cross the wire one after another, each once it is complete.
void add_all_reduce(const StepInputs& inputs, StepPrediction& step) {
  constexpr double kShareMax = 0.9;
  const auto& link = inputs.link;
  Backward backward{
      .all_s = inputs.compute.backward_s,
      .wire_share = std::min(kShareMax, link.core_s_per_byte * link.bytes_per_second)};
  for (const auto& bucket : buckets_of(inputs.gradients, inputs.reduction)) {
    const double seconds = ring_seconds(bucket.payload_bytes, inputs.ranks, link);
    backward.reach((inputs.reduction.overlaps ? bucket.ready : 1) * backward.all_s);
    step.slowed_s += backward.beside_wire(seconds);
    step.wire_s += seconds;
    step.sent_bytes += ring_bytes(bucket.payload_bytes, inputs.ranks);
  }
  backward.reach(backward.all_s);
  step.exposed_s = beyond(backward.now_s, backward.all_s + step.slowed_s);
  if (inputs.reduction.codec_bytes_per_second > 0)
    step.codec_s = kFloatBytes * static_cast<double>(element_count(inputs.gradients)) /
                   inputs.reduction.codec_bytes_per_second;
  add_gathers_of_forward(0, inputs, step);
}

/// What moves in a step by the laws of ZeRO (Rajbhandari et al. 2020, section 7): gradients are
/// reduced in the backward that makes them, weights gathered for the pass that needs them; what
/// was updated in shards, and stays whole, is gathered when nothing computes. Groups of ranks do
/// this among themselves, and in the last backward sum their shards of the gradients.
void add_zero(const StepInputs& inputs, StepPrediction& step) {
  const int sharers = inputs.zero_group.value_or(inputs.ranks);
  const int groups = inputs.ranks / sharers;
  const auto elements = static_cast<double>(element_count(inputs.gradients));
  const auto passes = static_cast<double>(inputs.passes);
  const double gradients = elements * inputs.gradient_bytes;
  const double weights = elements * inputs.weight_bytes;
  const double scatter_s = half_ring_seconds(gradients, sharers, inputs.link);
  const bool gathers_in_passes = inputs.zero_stage == 3;
  const double gathered_share = gathers_in_passes ? inputs.gathered_share : 1;
  const double gather_s = gathered_share * half_ring_seconds(weights, sharers, inputs.link);
  const double cross_s = ring_seconds(gradients / sharers, groups, inputs.link);
  const auto& compute = inputs.compute;
  const double half_ring = ring_bytes(1, sharers) / 2;
  const double reduces = inputs.zero_stage == 1 ? 1 : passes;
  const double gathers = gathers_in_passes ? 2 * passes : 1;
  step.sent_bytes = half_ring * (reduces * gradients + gathers * gathered_share * weights) +
                    ring_bytes(gradients / sharers, groups);
  step.wire_s = reduces * scatter_s + gathers * gather_s + cross_s;
  const double in_backward_s = scatter_s + (gathers_in_passes ? gather_s : 0);
  step.exposed_s = (reduces - 1) * beyond(in_backward_s, compute.backward_s) +
                   beyond(in_backward_s + cross_s, compute.backward_s);
  if (!gathers_in_passes) step.exposed_s += gather_s;
  add_gathers_of_forward(gathers_in_passes ? gather_s : 0, inputs, step);
}

}  // namespace

std::vector<Bucket> buckets_of(std::span<const Gradient> gradients, const Reduction& reduction) {
  std::vector<Bucket> buckets;
  std::optional<Bucket> open;
  double limit = static_cast<double>(std::min(kFirstBucketBytesPlanned, reduction.bucket_bytes));
  for (const auto& gradient : gradients) {
    if (!open) open = Bucket{.ready = 0};
    open->payload_bytes += payload_bytes(gradient, reduction.codec, reduction.powersgd_rank);
    open->ready = std::max(open->ready, gradient.ready);
    open->elements += element_count(gradient.shape);
    if (kFloatBytes * static_cast<double>(open->elements) < limit) continue;
    buckets.push_back(*open);
    open.reset();
    limit = static_cast<double>(reduction.bucket_bytes);
  }
  if (open) buckets.push_back(*open);
  return buckets;
}

StepPrediction predict_step(const StepInputs& inputs) {
  StepPrediction step{.compute_s = inputs.compute.of_step(inputs.passes)};
  if (inputs.ranks == 1) return step;
  if (inputs.zero_stage == 0) {
    add_all_reduce(inputs, step);
  } else {
    add_zero(inputs, step);
  }
  return step;
}

std::vector<Gradient> gradients_by_blocks(std::span<const PlannedTensor> tensors,
                                          std::span<const PlannedBlock> blocks) {
  std::vector<std::optional<std::size_t>> first(tensors.size()), last(tensors.size());
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    for (const auto tensor : blocks[block]) {
      if (!first[tensor]) first[tensor] = block;
      last[tensor] = block;
    }
  }
  std::vector<double> done(
      blocks.size());  // work of the block; then share of backward before its end
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    if (last[tensor])
      done[*last[tensor]] += static_cast<double>(element_count(tensors[tensor].shape));
  }
  const double all = std::max(1.0, std::reduce(done.begin(), done.end()));
  double sum = 0;
  for (std::size_t block = blocks.size(); block-- > 0;) {
    sum += done[block];
    done[block] = sum / all;
  }
  std::vector<Gradient> gradients;
  for (std::size_t tensor = tensors.size(); tensor-- > 0;) {
    if (!tensors[tensor].is_trained) continue;
    gradients.push_back(
        {.shape = tensors[tensor].shape, .ready = first[tensor] ? done[*first[tensor]] : 1});
  }
  std::ranges::stable_sort(gradients, {}, &Gradient::ready);
  return gradients;
}

}  // namespace tj::trainer
