#include "trainer/predict/memory.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace tj::trainer {
namespace {

constexpr double kFloat = 4, kHalf = 2;
constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kUsableShare =
    0.95;  // of a GPU's memory: the rest is the driver's and lost between
constexpr int kStageMax = 3;
constexpr int kRanksMax = 1024;

constexpr std::array<GpuKind, 18> kGpus{{{"B200", 180 * kGib},
                                         {"H200", 141 * kGib},
                                         {"H100 NVL", 94 * kGib},
                                         {"H100", 80 * kGib},
                                         {"H800", 80 * kGib},
                                         {"A100-SXM4-40GB", 40 * kGib},
                                         {"A100-PCIE-40GB", 40 * kGib},
                                         {"A100", 80 * kGib},
                                         {"A800", 80 * kGib},
                                         {"L40S", 48 * kGib},
                                         {"L4", 24 * kGib},
                                         {"A10", 24 * kGib},
                                         {"RTX 4090", 24 * kGib},
                                         {"RTX 3090", 24 * kGib},
                                         {"V100-SXM2-16GB", 16 * kGib},
                                         {"V100", 32 * kGib},
                                         {"T4", 16 * kGib},
                                         {"MI300X", 192 * kGib}}};

/// Bytes of one trained element on a rank.
struct OfElement {
  double weights = 0, gradients = 0, moments = 0, averages = 0;
};

/// The table of docs/trainer.md (ZeRO), by parts.
OfElement of_element(const MemoryInputs& inputs) {
  const double shard = 1.0 / inputs.zero_group.value_or(inputs.ranks);
  const int stage = inputs.zero_stage;
  const auto shared_from = [&](int from) { return stage >= from ? shard : 1.0; };
  OfElement bytes{.weights = kFloat * shared_from(3),
                  .gradients = kFloat * shared_from(2),
                  .moments = 2 * kFloat * shared_from(1),
                  .averages = inputs.has_averages ? kFloat * shared_from(1) : 0};
  if (stage == 0 || !inputs.is_half) return bytes;
  // Passes compute with half precision; float32 weights are in shards.
  bytes.weights = kHalf * shared_from(3) + kFloat * shard;
  if (!inputs.sums_passes) bytes.gradients = kHalf * shared_from(2);
  return bytes;
}

/// int8 and PowerSGD keep what they did not send, and PowerSGD its factors.
double codec_state_bytes(const MemoryInputs& inputs) {
  const auto codec = inputs.reduction.codec;
  if (inputs.ranks == 1 || inputs.zero_stage > 0) return 0;
  if (codec != Codec::int8 && codec != Codec::powersgd) return 0;
  double bytes = kFloat * static_cast<double>(inputs.trained_elements);
  if (codec == Codec::int8) return bytes;
  for (const auto& gradient : inputs.gradients) {
    if (is_factored(gradient, inputs.reduction.powersgd_rank))
      bytes += payload_bytes(gradient, codec, inputs.reduction.powersgd_rank);
  }
  return bytes;
}

/// What is under way between ranks beside the gradients themselves, which lie in their buckets:
/// the largest of those in another form, or when buckets are made anew; of ZeRO the block that
/// computes and the next one, and what else is gathered.
double traffic_bytes(const MemoryInputs& inputs) {
  if (inputs.ranks == 1) return 0;
  if (inputs.zero_stage == 0) {
    std::int64_t largest = 0;
    for (const auto& bucket : buckets_of(inputs.gradients, inputs.reduction))
      largest = std::max(largest, bucket.elements);
    return kFloat * static_cast<double>(largest);
  }
  const double element = inputs.is_half ? kHalf : kFloat;
  const double blocks = 2 * static_cast<double>(inputs.block_elements) * element;
  if (inputs.zero_stage < 3) return inputs.zero_stage == 1 ? blocks / 2 : blocks;
  return 2 * blocks + static_cast<double>(inputs.gathered_elements) * element;
}

bool fits(const MemoryInputs& inputs, double room) { return memory_of(inputs).bytes() <= room; }

std::string text_of(const MemoryChange& change, const MemoryRoom& room) {
  std::string text;
  const auto add = [&](const std::string& flag) { text += (text.empty() ? "" : " and ") + flag; };
  if (change.zero_stage > 0) add("--zero " + std::to_string(change.zero_stage));
  if (change.recompute) add("--recompute");
  if (change.passes_factor > 1)
    add("--accumulation " + std::to_string(room.accumulation * change.passes_factor) + " (" +
        std::to_string(room.micro_batch / change.passes_factor) + " in a pass)");
  return text;
}

}  // namespace

double MemoryNeed::bytes() const {
  double sum = 0;
  for (const auto& part : parts) sum += part.bytes;
  return sum;
}

MemoryNeed memory_of(const MemoryInputs& inputs) {
  const auto elements = static_cast<double>(inputs.trained_elements);
  const auto bytes = of_element(inputs);
  MemoryNeed need{.parts = {}, .is_whole = inputs.activation_bytes.has_value()};
  const auto add = [&](const std::string& name, double part) {
    if (part > 0) need.parts.push_back({.name = name, .bytes = part});
  };
  add("weights", bytes.weights * elements + kFloat * static_cast<double>(inputs.other_elements));
  for (const auto& part : inputs.held) add(part.name, part.bytes_of_rank(inputs.ranks));
  add("gradients", bytes.gradients * elements);
  add("moments", bytes.moments * elements);
  add("averages", bytes.averages * elements);
  add("errors of the codec", codec_state_bytes(inputs));
  add("traffic", traffic_bytes(inputs));
  add("activations",
      inputs.activation_bytes.value_or(0) + (inputs.zero_stage == 0 ? inputs.cast_bytes : 0));
  add("data", inputs.data_bytes);
  if (inputs.saves_here) {
    // Weights and moments once more, while a checkpoint is written: by one rank or another.
    const double whole = 3 * kFloat + (inputs.has_averages ? kFloat : 0);
    add("copy for a save", whole * elements / (inputs.zero_stage > 0 ? inputs.ranks : 1));
  }
  add("libraries' scratch", inputs.scratch_bytes);
  add("program", inputs.process_bytes);
  return need;
}

std::optional<MemoryChange> smallest_change(const MemoryInputs& inputs, const MemoryRoom& room) {
  for (int stage = inputs.zero_stage; stage <= (inputs.ranks > 1 ? kStageMax : 0); ++stage) {
    for (const bool recompute : {false, true}) {
      if (recompute && !(room.can_recompute && room.recompute_share > 0)) continue;
      for (std::int64_t factor = 1; factor <= room.micro_batch; factor *= 2) {
        if (room.micro_batch % factor != 0) break;
        auto changed = inputs;
        changed.zero_stage = stage;
        changed.sums_passes = inputs.sums_passes || factor > 1;
        const double share = (recompute ? room.recompute_share : 1.0) / static_cast<double>(factor);
        changed.activation_bytes = inputs.activation_bytes.value_or(0) * share;
        if (recompute) changed.cast_bytes = room.recompute_cast_bytes;
        if (!fits(changed, room.bytes)) continue;
        MemoryChange change{.passes_factor = factor,
                            .zero_stage = stage == inputs.zero_stage ? 0 : stage,
                            .recompute = recompute,
                            .text = {}};
        change.text = text_of(change, room);
        return change;
      }
    }
  }
  return std::nullopt;
}

std::span<const GpuKind> gpu_kinds() { return kGpus; }

double usable_bytes(const GpuKind& kind) { return kUsableShare * kind.memory_bytes; }

std::optional<GpuKind> gpu_kind_named(std::string_view name) {
  const auto low = [](std::string_view text) {
    std::string letters(text);
    for (auto& letter : letters)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return letters;
  };
  const std::string wanted = low(name);
  // Either may be the longer one: "NVIDIA H100 80GB HBM3", "4090".
  for (const auto& kind : kGpus)
    if (wanted.find(low(kind.name)) != std::string::npos) return kind;
  for (const auto& kind : kGpus)
    if (!wanted.empty() && low(kind.name).find(wanted) != std::string::npos) return kind;
  return std::nullopt;
}

std::optional<GpuCount> gpus_needed(const MemoryInputs& inputs, double memory_bytes) {
  for (int ranks = 1; ranks <= kRanksMax; ranks *= 2) {
    for (int stage = 0; stage <= (ranks == 1 ? 0 : kStageMax); ++stage) {
      auto tried = inputs;
      tried.ranks = ranks;
      tried.zero_stage = stage;
      tried.zero_group = std::nullopt;
      const double bytes = memory_of(tried).bytes();
      if (bytes <= kUsableShare * memory_bytes)
        return GpuCount{.ranks = ranks, .zero_stage = stage, .bytes = bytes};
    }
  }
  return std::nullopt;
}

}  // namespace tj::trainer
