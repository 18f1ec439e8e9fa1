// ZeRO in groups of ranks: what plain training learns, by less traffic between the groups.
#include <algorithm>

#include "tests/trainer/engine/gpt2_training.h"

namespace tj::trainer {
namespace {

struct Sharing {
  int stage = 1;
  int ranks = 4;
  int group = 2;
  int passes = 1;
};

std::string text_of(const Sharing& sharing) {
  return "stage " + std::to_string(sharing.stage) + ", " + std::to_string(sharing.ranks) +
         " ranks in groups of " + std::to_string(sharing.group) + ", " +
         std::to_string(sharing.passes) + " passes";
}

Flags with_sharing(Flags flags, const Sharing& sharing) {
  flags["--zero"] = std::to_string(sharing.stage);
  flags["--zero-group"] = std::to_string(sharing.group);
  flags["--accumulation"] = std::to_string(sharing.passes);
  return flags;
}

/// All parts of one rank are those of `wanted`, bit by bit.
void expect_parts(const std::vector<NamedTensor>& tensors, const std::string& prefix, int rank,
                  const Tensors& wanted) {
  for (const auto& named : tensors) {
    if (!named.tensor.defined()) continue;
    const auto part = named.parts.empty() ? ElementRange{0, named.tensor.numel()}
                                          : named.parts[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(named.tensor.detach().reshape({-1}).equal(
        wanted.at(prefix + named.name).narrow(0, part.begin, part.size())))
        << prefix << named.name << " of rank " << rank;
  }
}

TEST(ZeroGroup, deterministic_has_the_bits_of_plain_training_on_each_rank) {
  const Flags flags{{"--deterministic", "true"}, {"--ema", "0.9"}, {"--dropout", "0.1"}};
  const auto wanted = train(small_with(flags), 1);
  for (const int stage : {1, 2, 3}) {
    for (const auto& [ranks, group, passes] :
         {std::tuple(1, 1, 2), {2, 1, 1}, {2, 2, 1}, {4, 1, 1}, {4, 2, 1}, {4, 2, 2}, {4, 4, 1}}) {
      const Sharing sharing{.stage = stage, .ranks = ranks, .group = group, .passes = passes};
      SCOPED_TRACE(text_of(sharing));
      const auto run = run_of(with_sharing(small_with(flags), sharing), ranks);
      on_ranks(ranks, [&](Communicator& communicator) {
        PhaseClock clock;
        Learner learner(run.plan, run.workload, communicator, clock);
        learner.begin();
        for (std::int64_t step = 0; step < kSteps; ++step)
          EXPECT_EQ(train_step(learner, run, communicator.rank(), step),
                    wanted.losses[static_cast<std::size_t>(step)]);
        const auto state = learner.state();
        expect_parts(state.model, "", communicator.rank(), wanted.state);
        expect_parts(state.optimizer, "", communicator.rank(), wanted.state);
        expect_parts(state.ema, "ema.", communicator.rank(), wanted.state);
      });
    }
  }
}

TEST(ZeroGroup, each_stage_learns_as_plain_training_within_a_bound) {
  for (const auto& [precision, bound] : {std::pair("fp32", 1e-5), std::pair("bf16", 1e-2)}) {
    const Flags alone{{"--precision", precision}, {"--batch-size", "12"}};
    const auto wanted = train(small_with(alone), 1).losses;
    for (const int stage : {1, 2, 3}) {
      for (const auto& [ranks, group, passes] :
           {std::tuple(4, 2, 1), {4, 2, 3}, {6, 2, 2}, {6, 3, 1}}) {
        const Sharing sharing{.stage = stage, .ranks = ranks, .group = group, .passes = passes};
        expect_near(train(with_sharing(small_with(alone), sharing), ranks).losses, wanted, bound,
                    precision + (", " + text_of(sharing)));
      }
    }
  }
}

struct Measured {
  double bytes = 0;  // of weights, gradients, moments: a rank's
  double sent = 0;   // by a rank in a step, elements
};

/// Both for each parameter.
Measured measured(const Sharing& sharing) {
  const auto run = run_of(with_sharing({{"--layers", "4"},
                                        {"--width", "128"},
                                        {"--heads", "4"},
                                        {"--seq-len", "32"},
                                        {"--batch-size", "8"}},
                                       sharing),
                          sharing.ranks);
  const auto parameters = static_cast<double>(parameter_count(run.workload.config()));
  Measured measured;
  on_ranks(sharing.ranks, [&](Communicator& communicator) {
    PhaseClock clock;
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    train_step(learner, run, communicator.rank(), 0);
    const auto before = communicator.volume().elements_sent;
    train_step(learner, run, communicator.rank(), 1);
    if (communicator.rank() != 0) return;
    measured = {
        .bytes = static_cast<double>(learner.state_bytes()) / parameters,
        .sent = static_cast<double>(communicator.volume().elements_sent - before) / parameters};
  });
  return measured;
}

TEST(ZeroGroup, memory_is_that_of_a_group_and_one_shard_crosses_in_a_step) {
  for (const int stage : {1, 2, 3}) {
    for (const auto& [ranks, group, passes] :
         {std::tuple(4, 2, 1), {8, 2, 1}, {8, 4, 1}, {4, 2, 2}}) {
      const Sharing sharing{.stage = stage, .ranks = ranks, .group = group, .passes = passes};
      const auto got = measured(sharing);
      const double n = group, groups = ranks / n;
      const double bytes[] = {8 + 8 / n, 4 + 12 / n, 16 / n};
      EXPECT_NEAR(got.bytes / bytes[stage - 1], 1.0, 0.1) << text_of(sharing);
      const double moved[] = {2.0, 1.0 + passes, 3.0 * passes};
      const double in_group = moved[stage - 1] * (n - 1) / n;
      const double across = 2 / n * (groups - 1) / groups;
      EXPECT_NEAR(got.sent / (in_group + across), 1.0, 0.05) << text_of(sharing);
    }
  }
}

TEST(ZeroGroup, an_overflow_in_one_group_is_one_of_all) {
  const Sharing sharing{.stage = 2, .ranks = 4, .group = 2};
  const auto run = run_of(with_sharing(small_with({{"--precision", "fp16"}}), sharing), 4);
  on_ranks(sharing.ranks, [&](Communicator& communicator) {
    PhaseClock clock;
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    const double scale = learner.loss_scale().scale;
    if (communicator.rank() == 3) learner.loss_scale().scale = 1e30;
    pass_all(learner, run, communicator.rank(), 0);
    learner.loss_scale().scale = scale;
    EXPECT_FALSE(learner.update(kLr, targets_of(run)).is_applied);
    EXPECT_EQ(learner.loss_scale().scale, scale / 2);
  });
}

}  // namespace
}  // namespace tj::trainer
