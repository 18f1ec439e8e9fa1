// --freeze: what is frozen stays as it was, bit by bit, and nothing is kept for it; the rest learns
// the same at every stage of ZeRO.
#include <algorithm>

#include "tests/trainer/engine/gpt2_training.h"
#include "trainer/values/glob.h"

namespace tj::trainer {
namespace {

/// The embeddings and the first layer have no gradient behind them, the last layer's weights have.
const std::vector<std::string> kFrozen{"transformer.w?e.weight", "transformer.h.0.*",
                                       "transformer.h.2.mlp.*"};

bool is_frozen(const std::string& name) {
  return std::ranges::any_of(kFrozen, [&](const auto& pattern) { return matches(pattern, name); });
}

Flags frozen_with(const Flags& more) {
  auto flags = small_with(more);
  flags["--layers"] = "3";
  for (const auto& pattern : kFrozen) flags["--freeze"] += pattern + "\n";
  flags["--freeze"].pop_back();
  return flags;
}

Tensors initial(const Flags& flags) {
  const auto run = run_of(flags, 1);
  const auto alone = make_single_communicator();
  PhaseClock clock;
  const Learner learner(run.plan, run.workload, *alone, clock);
  Tensors state;
  collect(learner.state().model, "", 0, state);
  return state;
}

TEST(Freeze, what_is_frozen_stays_and_has_no_moments_and_the_rest_learns) {
  const auto flags = frozen_with({{"--ema", "0.9"}});
  const auto before = initial(flags);
  const auto after = train(flags, 1);
  int stayed = 0;
  for (const auto& [name, tensor] : before) {
    EXPECT_EQ(after.state.at(name).equal(tensor), is_frozen(name)) << name;
    for (const char* const prefix : {"exp_avg.", "exp_avg_sq.", "ema."})
      EXPECT_EQ(after.state.contains(prefix + name), !is_frozen(name)) << prefix << name;
    stayed += is_frozen(name) ? 1 : 0;
  }
  EXPECT_EQ(stayed, 2 + 12 + 4);
  EXPECT_LT(after.losses.back(), after.losses.front());
}

TEST(Freeze, has_the_same_bits_at_each_stage_size_and_group) {
  const Flags flags{{"--deterministic", "true"}, {"--ema", "0.9"}};
  const auto wanted = train(frozen_with(flags), 1);
  for (const int stage : {0, 1, 2, 3}) {
    for (const auto& [ranks, group] : {std::pair(1, 1), {2, 2}, {4, 2}}) {
      auto with = flags;
      with["--zero"] = std::to_string(stage);
      if (stage > 0) with["--zero-group"] = std::to_string(group);
      const auto got = train(frozen_with(with), ranks);
      EXPECT_EQ(got.losses, wanted.losses) << "stage " << stage << ", " << ranks << " ranks";
      ASSERT_EQ(got.state.size(), wanted.state.size());
      for (const auto& [name, tensor] : wanted.state)
        EXPECT_TRUE(got.state.at(name).equal(tensor)) << name << ", stage " << stage;
    }
  }
}

TEST(Freeze, layers_that_are_run_again_give_the_gradients_of_the_rest) {
  for (const char* const stage : {"0", "3"}) {
    const Flags flags{{"--zero", stage}};
    const auto wanted = train(frozen_with(flags), 1).losses;
    auto again = flags;
    again["--recompute"] = "true";
    EXPECT_EQ(train(frozen_with(again), 1).losses, wanted) << "stage " << stage;
  }
}

}  // namespace
}  // namespace tj::trainer
