// What one rank holds in memory, part by part, and what fits. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/predict/step.h"
#include "trainer/workload/pass_memory.h"

namespace tj::trainer {

struct MemoryInputs {
  std::int64_t trained_elements = 0;
  std::int64_t other_elements = 0;  // frozen tensors and buffers: whole on each rank, float32
  std::int64_t block_elements = 0;  // of the largest block, for ZeRO
  /// That ZeRO-3 gathers at once beyond two blocks: ahead of need, or kept for the next.
  std::int64_t gathered_elements = 0;
  int ranks = 1;
  int zero_stage = 0;
  std::optional<int> zero_group = {};  // ranks that share out among themselves; absent: all
  bool is_half = false;                // --precision bf16 or fp16
  bool sums_passes = false;            // gradients of several passes are added up in float32
  bool has_averages = false;
  std::vector<Gradient> gradients = {};
  Reduction reduction = {};
  /// Of all that a forward leaves for its backward, and of what backward takes beside it, at the
  /// micro-batch of the run; absent: not known.
  std::optional<double> activation_bytes = {};
  /// That activations take more where weights are float32 and products are not: without ZeRO.
  double cast_bytes = 0;
  std::vector<MemoryPart> held = {};  // by the workload, beside its tensors
  double data_bytes = 0;              // batches that were read ahead
  double process_bytes = 0;           // the program and its libraries, or a GPU's context
  double scratch_bytes = 0;           // of libraries, beside tensors
  bool saves_here = true;             // the copy of the state for a checkpoint is in this memory
};

struct MemoryNeed {
  std::vector<MemoryPart> parts = {};  // those that take something
  bool is_whole = true;                // false: activations are not known, and not in it
  double bytes() const;
};

MemoryNeed memory_of(const MemoryInputs& inputs);

/// Memory that a rank may take, and whose it is; absent bytes: not known.
struct RankRoom {
  std::optional<double> bytes = {};
  std::string origin = {};  // "of this machine", "--gpu H100"
};

/// A flag, and what a rank then needs.
struct Remedy {
  std::string flag = {};  // "--accumulation 16"
  std::string note = {};  // "8 samples in a pass become 4"; empty: none
  double bytes = 0;
};

/// What could be changed so that it fits.
struct MemoryChange {
  std::int64_t passes_factor = 1;  // so many times the accumulation, with a smaller micro-batch
  int zero_stage = 0;
  bool recompute = false;
  std::string text = {};  // "--zero 2 and --accumulation 16 (2 samples in a pass)"
};
struct MemoryRoom {
  double bytes = 0;
  std::int64_t micro_batch = 1;
  std::int64_t accumulation = 1;
  bool can_recompute = false;
  /// Of activations that remain with --recompute; 0: not known.
  double recompute_share = 0;
  double recompute_cast_bytes = 0;  // in place of cast_bytes
};
/// The first that fits: fewer samples in a pass with as many more passes (the same training),
/// then --recompute, then stages of ZeRO, then both. Absent: none of them does.
std::optional<MemoryChange> smallest_change(const MemoryInputs& inputs, const MemoryRoom& room);

struct GpuKind {
  std::string_view name = {};
  double memory_bytes = 0;
};
/// Memory as the data sheets say it, in GiB of which the driver keeps some for itself.
std::span<const GpuKind> gpu_kinds();
/// What a rank may take of one.
double usable_bytes(const GpuKind& kind);
/// By a part of the name, in letters of any size; absent: not known.
std::optional<GpuKind> gpu_kind_named(std::string_view name);

/// The least number of such GPUs, a power of two up to `ranks_max`, on which a rank's part fits at
/// the lowest stage of ZeRO that makes it fit. Absent: none.
struct GpuCount {
  int ranks = 1;
  int zero_stage = 0;
  double bytes = 0;
};
std::optional<GpuCount> gpus_needed(const MemoryInputs& inputs, double memory_bytes);

}  // namespace tj::trainer
