// A plan and its GPT-2, as the engine makes them of flags, for tests that need no data.
#pragma once
#include <optional>

#include "trainer/train/plan.h"
#include "trainer/train/tuning.h"
#include "trainer/workloads/gpt2/gpt2_workload.h"

namespace tj::trainer {

struct Gpt2Run {
  Gpt2Workload workload;
  TrainPlan plan;
};

inline Preset preset_of(const Flags& flags) {
  const auto entry = gpt2_entry();
  const auto model = flags.find("--model");
  return choose_workload({&entry, 1},
                         model == flags.end() ? std::nullopt : std::optional(model->second))
      ->preset;
}

/// With the vocabulary that data of `vocabulary` gives it; 0: that of a flag, or none.
inline Result<Gpt2Run> gpt2_run(const Flags& flags, int world_size, std::int64_t vocabulary = 256) {
  Gpt2Workload workload(preset_of(flags));
  auto plan = make_plan(flags, world_size, preset_of(flags), workload);
  if (!plan) return plan.error();
  if (vocabulary > 0) {
    if (const auto settled = workload.settle_vocabulary(vocabulary); !settled)
      return settled.error();
    if (const auto settled = settle_model(*plan, workload); !settled) return settled.error();
  }
  return Gpt2Run{std::move(workload), std::move(*plan)};
}

}  // namespace tj::trainer
