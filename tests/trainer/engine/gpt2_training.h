// Trainings of a small GPT-2 by ranks that are threads, and what they leave. Includes torch.
#pragma once
#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "tests/trainer/engine/gpt2_run.h"
#include "tests/trainer/engine/thread_ranks.h"
#include "tests/trainer/engine/whole_state.h"
#include "trainer/train/learner.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

inline constexpr double kLr = 1e-2;

inline Gpt2Run run_of(Flags flags, int world_size) {
  flags.insert({{"--data", "/text"}, {"--out", "/out"}, {"--threads", "1"}});
  auto run = gpt2_run(flags, world_size);
  TORCH_CHECK(run, run ? "" : describe(run.error()));
  return std::move(*run);
}

/// [batch, context + 1], the same for every run.
inline at::Tensor tokens_of(const Gpt2Run& run, std::int64_t step) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step) + 5);
  return torch::randint(0, 40, {run.plan.batch_size, run.workload.config().context + 1}, generator,
                        torch::kInt64);
}

inline std::int64_t targets_of(const Gpt2Run& run) {
  return run.plan.batch_size * run.workload.config().context;
}

inline void pass_all(Learner& learner, const Gpt2Run& run, int rank, std::int64_t step) {
  const auto& plan = run.plan;
  const auto tokens = tokens_of(run, step);
  for (std::int64_t pass = 0; pass < plan.accumulation; ++pass) {
    const auto first = (rank * plan.accumulation + pass) * plan.micro_batch;
    learner.pass({tokens.narrow(0, first, plan.micro_batch)}, step * plan.batch_size + first,
                 targets_of(run));
  }
}

inline double train_step(Learner& learner, const Gpt2Run& run, int rank, std::int64_t step) {
  pass_all(learner, run, rank, step);
  const auto outcome = learner.update(kLr, targets_of(run));
  TORCH_CHECK(outcome.is_applied, "every step counts");
  return outcome.loss;
}

struct Trained {
  std::vector<double> losses;
  Tensors state;  // whole, flat: weights, moments and averages
};

inline constexpr std::int64_t kSteps = 4;

inline Trained train(const Flags& flags, int world_size) {
  const auto run = run_of(flags, world_size);
  Trained trained;
  on_ranks(world_size, [&](Communicator& communicator) {
    PhaseClock clock;
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const double loss = train_step(learner, run, communicator.rank(), step);
      if (communicator.rank() == 0) trained.losses.push_back(loss);
    }
    const auto state = learner.state();
    collect(state.model, "", communicator.rank(), trained.state);
    collect(state.optimizer, "", communicator.rank(), trained.state);
    collect(state.ema, "ema.", communicator.rank(), trained.state);
  });
  return trained;
}

inline Flags small_with(const Flags& more) {
  Flags flags{{"--layers", "2"},   {"--width", "32"},      {"--heads", "2"},
              {"--seq-len", "16"}, {"--batch-size", "16"}, {"--grad-clip", "0.1"}};
  for (const auto& [name, value] : more) flags[name] = value;
  return flags;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted,
                        double bound, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size()) << what;
  for (std::size_t step = 0; step < wanted.size(); ++step)
    EXPECT_NEAR(got[step] / wanted[step], 1.0, bound) << what << ", step " << step;
}

}  // namespace tj::trainer
