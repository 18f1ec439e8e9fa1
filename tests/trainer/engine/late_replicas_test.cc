#include "trainer/train/late_replicas.h"

#include <gtest/gtest.h>

#include "tests/trainer/engine/line_run.h"

namespace tj::trainer {
namespace {

const SyncPlan kLate{.kind = SyncKind::late};
constexpr std::int64_t kSteps = 6;

/// In one process: the gradient of a step is applied at the end of the next one.
LineRank expected(int ranks, std::int64_t passes, std::int64_t steps) {
  auto rank = LineRank::initial();
  const double weight = static_cast<double>(kLineRows * ranks * passes);
  std::vector<at::Tensor> waiting;
  for (std::int64_t step = 0; step < steps; ++step) {
    auto sum = rank.gradients(0, step, passes, weight);
    for (int other = 1; other < ranks; ++other) {
      const auto more = rank.gradients(other, step, passes, weight);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + more[i];
    }
    if (!waiting.empty()) rank.update(waiting, UpdateRule{.weight_decay = 0.1});
    waiting = sum;
  }
  return rank;
}

TEST(LateReplicas, apply_the_gradient_of_a_step_at_the_end_of_the_next) {
  for (const int ranks : {2, 3}) {
    for (const std::int64_t passes : {1, 2}) {
      const auto got = train_lines(line_plan(kLate, passes), ranks, kSteps);
      const auto wanted = expected(ranks, passes, kSteps);
      for (const auto& weights : got.weights) {
        EXPECT_TRUE(are_near(weights, wanted.weights)) << ranks << " ranks, " << passes;
        EXPECT_TRUE(are_same(weights, got.weights[0])) << "all ranks have the same bits";
      }
    }
  }
}

TEST(LateReplicas, leave_the_weights_of_the_first_step_alone) {
  const auto got = train_lines(line_plan(kLate), 2, 1);
  EXPECT_TRUE(are_same(got.weights[0], LineRank::initial().weights));
  EXPECT_EQ(got.norms.at(0), 0) << "nothing was applied";
}

TEST(LateReplicas, clip_what_is_applied) {
  auto plan = line_plan(kLate);
  plan.grad_clip = 0.1;
  const auto got = train_lines(plan, 2, 3);
  const auto plain = train_lines(line_plan(kLate), 2, 3);
  EXPECT_EQ(got.norms, plain.norms) << "norms are told as they are before clipping";
  EXPECT_GT(got.norms.at(1), 0.1);
}

TEST(LateReplicas, go_on_with_the_same_bits) {
  const auto plan = line_plan(kLate, 2);
  const auto wanted = train_lines(plan, 2, kSteps);
  const auto got = train_lines_resumed(plan, 2, 3, kSteps);
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(are_same(got.weights.at(rank), wanted.weights.at(rank))) << "rank " << rank;
}

TEST(LateReplicas, all_ranks_hear_of_a_gradient_of_one_that_is_not_finite) {
  const Lines lines;
  const auto plan = line_plan(kLate);
  const auto batches = [](int rank, std::int64_t step, std::int64_t pass) {
    auto batch = line_batch(rank, step, pass);
    if (rank == 1 && step == 2) batch.push_back(batch[0]);
    return batch;
  };
  on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(plan, lines, communicator, clock);
    learner.begin();
    for (std::int64_t step = 0; step < 4; ++step) {
      const auto outcome = line_step(learner, plan, communicator, step, batches);
      EXPECT_EQ(outcome.is_applied, step < 3) << "one step late: step " << step;
      EXPECT_TRUE(std::isfinite(outcome.loss));
    }
    EXPECT_TRUE(learner.is_finite_here()) << "it has not reached the weights";
    learner.prepare_save();
  });
}

}  // namespace
}  // namespace tj::trainer
