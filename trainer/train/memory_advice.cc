#include "trainer/train/memory_advice.h"

#include <algorithm>
#include <utility>

namespace tj::trainer {
namespace {

constexpr int kZeroStageMax = 3;

MemoryInputs inputs_of(const AdviceRequest& asked, const TrainPlan& plan) {
  auto inputs = forecast_inputs(asked.request, plan, asked.workload);
  inputs.memory.gradients = std::move(inputs.gradients);
  if (inputs.memory.process_bytes == 0) inputs.memory.process_bytes = asked.process_bytes;
  return std::move(inputs.memory);
}

double bytes_of(const AdviceRequest& asked, const TrainPlan& plan) {
  return memory_of(inputs_of(asked, plan)).bytes();
}

bool fits(double bytes, const RankRoom& room) { return room.bytes && bytes <= *room.bytes; }

/// As many passes as fit, or as there can be.
void add_smaller_passes(const AdviceRequest& asked, std::vector<Remedy>& remedies) {
  std::optional<Remedy> found;
  const auto& plan = asked.plan;
  for (std::int64_t factor = 2; factor <= plan.micro_batch && plan.micro_batch % factor == 0;
       factor *= 2) {
    auto changed = plan;
    changed.micro_batch /= factor;
    changed.accumulation *= factor;
    found = Remedy{.flag = "--accumulation " + std::to_string(changed.accumulation),
                   .note = std::to_string(plan.micro_batch) + " samples in a pass become " +
                           std::to_string(changed.micro_batch),
                   .bytes = bytes_of(asked, changed)};
    if (fits(found->bytes, asked.room)) break;
  }
  if (found) remedies.push_back(std::move(*found));
}

void add_recomputation(const AdviceRequest& asked, std::vector<Remedy>& remedies) {
  if (asked.plan.recompute) return;
  auto changed = asked.plan;
  changed.recompute = true;
  remedies.push_back({.flag = "--recompute", .note = {}, .bytes = bytes_of(asked, changed)});
}

void add_those_of_the_workload(const AdviceRequest& asked, std::vector<Remedy>& remedies) {
  auto inputs = inputs_of(asked, asked.plan);
  inputs.cast_bytes = 0;  // is in what the workload says of this stage
  for (auto& own : asked.workload.pass_remedies(pass_rule_of(asked.request, asked.plan))) {
    inputs.held = std::move(own.memory.held);
    inputs.activation_bytes = own.memory.activation_bytes;
    remedies.push_back({.flag = own.flag, .note = own.note, .bytes = memory_of(inputs).bytes()});
  }
}

/// The first stage that fits, or the last.
void add_zero(const AdviceRequest& asked, std::vector<Remedy>& remedies) {
  const auto& plan = asked.plan;
  const bool is_possible = asked.request.ranks > 1 && plan.sync.kind == SyncKind::step &&
                           asked.request.codec == Codec::fp32;
  if (!is_possible) return;
  std::optional<Remedy> found;
  for (int stage = plan.zero.stage + 1; stage <= kZeroStageMax; ++stage) {
    auto changed = plan;
    changed.zero.stage = stage;
    found = Remedy{
        .flag = "--zero " + std::to_string(stage), .note = {}, .bytes = bytes_of(asked, changed)};
    if (fits(found->bytes, asked.room)) break;
  }
  if (found) remedies.push_back(std::move(*found));
}

}  // namespace

std::optional<MemoryShortage> shortage_of(const AdviceRequest& asked) {
  const auto memory = inputs_of(asked, asked.plan);
  if (!memory.activation_bytes) return std::nullopt;
  MemoryShortage shortage{.bytes = memory_of(memory).bytes(), .room = asked.room};
  add_smaller_passes(asked, shortage.remedies);
  add_recomputation(asked, shortage.remedies);
  add_those_of_the_workload(asked, shortage.remedies);
  add_zero(asked, shortage.remedies);
  if (!asked.room.bytes) return shortage;
  auto room = forecast_inputs(asked.request, asked.plan, asked.workload).memory_room;
  room.bytes = *asked.room.bytes;
  if (const auto change = smallest_change(memory, room)) shortage.together = change->text;
  return shortage;
}

}  // namespace tj::trainer
