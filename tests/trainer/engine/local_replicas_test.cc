#include "trainer/train/local_replicas.h"

#include <gtest/gtest.h>

#include "tests/trainer/engine/line_run.h"

namespace tj::trainer {
namespace {

constexpr int kRanks = 2;
constexpr std::int64_t kSteps = 7;  // with 3 in a round the last round is not over

SyncPlan sync_of(SyncKind kind, std::int64_t every) { return {.kind = kind, .every = every}; }

at::Tensor mean_of(const std::vector<at::Tensor>& tensors) { return at::stack(tensors).mean(0); }

/// All ranks of a reference, each with an optimizer of its own between two synchronisations.
class Reference {
 public:
  explicit Reference(const SyncPlan& sync)
      : sync_(sync), ranks_(kRanks, LineRank::initial()), start_(ranks_[0].weights) {
    for (const auto& weight : start_) momentum_.push_back(torch::zeros_like(weight));
  }

  std::vector<LineRank> train(std::int64_t steps) {
    for (std::int64_t step = 0; step < steps; ++step) {
      for (int rank = 0; rank < kRanks; ++rank) {
        auto& own = ranks_[static_cast<std::size_t>(rank)];
        own.update(own.gradients(rank, step, 1, kLineRows), UpdateRule{.weight_decay = 0.1});
      }
      if ((step + 1) % sync_.every == 0) synchronise();
    }
    return ranks_;
  }

 private:
  void synchronise() {
    for (std::size_t i = 0; i < start_.size(); ++i) {
      auto mean = mean_of({ranks_[0].weights[i], ranks_[1].weights[i]});
      if (sync_.kind == SyncKind::diloco) {
        const auto gradient = start_[i] - mean;
        momentum_[i] = sync_.outer_momentum * momentum_[i] + gradient;
        mean = start_[i] - sync_.outer_lr * (gradient + sync_.outer_momentum * momentum_[i]);
      } else {
        const auto first = mean_of({ranks_[0].first[i], ranks_[1].first[i]});
        const auto second = mean_of({ranks_[0].second[i], ranks_[1].second[i]});
        for (auto& rank : ranks_) {
          rank.first[i] = first;
          rank.second[i] = second;
        }
      }
      for (auto& rank : ranks_) rank.weights[i] = mean;
      start_[i] = mean;
    }
  }

  SyncPlan sync_;
  std::vector<LineRank> ranks_;
  std::vector<at::Tensor> start_;
  std::vector<at::Tensor> momentum_;
};

TEST(LocalReplicas, equal_a_reference_by_hand) {
  for (const auto kind : {SyncKind::local, SyncKind::diloco}) {
    for (const std::int64_t every : {1, 3}) {
      const auto sync = sync_of(kind, every);
      const auto got = train_lines(line_plan(sync), kRanks, kSteps);
      const auto wanted = Reference(sync).train(kSteps);
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        EXPECT_TRUE(are_near(got.weights[rank], wanted[rank].weights))
            << to_string(kind) << ", every " << every << ", rank " << rank;
    }
  }
}

TEST(LocalReplicas, are_the_same_after_a_synchronisation_and_only_then) {
  for (const auto kind : {SyncKind::local, SyncKind::diloco}) {
    const auto plan = line_plan(sync_of(kind, 3));
    const auto synchronised = train_lines(plan, kRanks, 6);
    EXPECT_TRUE(are_same(synchronised.weights[0], synchronised.weights[1])) << to_string(kind);
    const auto apart = train_lines(plan, kRanks, 7);
    EXPECT_FALSE(are_same(apart.weights[0], apart.weights[1])) << to_string(kind);
  }
}

TEST(LocalReplicas, are_the_same_after_the_last_step_of_a_run) {
  auto plan = line_plan(sync_of(SyncKind::diloco, 100));
  plan.schedule.steps = 4;
  const auto got = train_lines(plan, kRanks, 4);
  EXPECT_TRUE(are_same(got.weights[0], got.weights[1]));
}

TEST(LocalReplicas, a_single_rank_of_diloco_has_an_outer_optimizer_too) {
  const auto diloco = train_lines(line_plan(sync_of(SyncKind::diloco, 3)), 1, 3);
  const auto plain = train_lines(line_plan({}), 1, 3);
  EXPECT_FALSE(are_near(diloco.weights[0], plain.weights[0]));
  auto all_the_way = sync_of(SyncKind::diloco, 3);
  all_the_way.outer_lr = 1;
  all_the_way.outer_momentum = 0;
  const auto same = train_lines(line_plan(all_the_way), 1, 3);
  EXPECT_TRUE(are_near(same.weights[0], plain.weights[0])) << "the whole way is where it got to";
}

TEST(LocalReplicas, go_on_with_the_same_bits_after_a_round_and_in_one) {
  for (const auto kind : {SyncKind::local, SyncKind::diloco}) {
    const auto plan = line_plan(sync_of(kind, 3));
    const auto wanted = train_lines(plan, kRanks, 8);
    for (const std::int64_t at : {3, 5}) {
      const auto got = train_lines_resumed(plan, kRanks, at, 8);
      for (std::size_t rank = 0; rank < kRanks; ++rank)
        EXPECT_TRUE(are_same(got.weights[rank], wanted.weights[rank]))
            << to_string(kind) << ", at " << at << ", rank " << rank;
    }
  }
}

TEST(LocalReplicas, send_next_to_nothing_between_two_synchronisations) {
  const Lines lines;
  const auto plan = line_plan(sync_of(SyncKind::local, 2));
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(plan, lines, communicator, clock);
    learner.begin();
    std::vector<std::int64_t> elements;
    for (std::int64_t step = 0; step < 2; ++step) {
      const auto before = communicator.volume().elements_sent;
      line_step(learner, plan, communicator, step);
      elements.push_back(communicator.volume().elements_sent - before);
    }
    EXPECT_EQ(elements[0], 0) << "the loss and the norm, half an element each";
    EXPECT_EQ(elements[1], 3 * trained_elements(lines.tensors())) << "weights and both moments";
  });
}

TEST(LocalReplicas, save_what_is_of_each_rank_only_where_ranks_differ) {
  const Lines lines;
  for (const auto kind : {SyncKind::local, SyncKind::diloco}) {
    const auto plan = line_plan(sync_of(kind, 2));
    on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock& clock) {
      Learner learner(plan, lines, communicator, clock);
      learner.begin();
      line_step(learner, plan, communicator, 0);
      EXPECT_EQ(learner.prepare_save(), GroupStems()) << "in a round";
      line_step(learner, plan, communicator, 1);
      const auto wanted =
          kind == SyncKind::local ? GroupStems{kRanksStem, kRoundStem} : GroupStems{kRoundStem};
      EXPECT_EQ(learner.prepare_save(), wanted) << to_string(kind);
    });
  }
}

TEST(LocalReplicas, all_ranks_hear_of_a_gradient_of_one_that_is_not_finite) {
  const Lines lines;
  const auto plan = line_plan(sync_of(SyncKind::local, 100));
  const auto batches = [](int rank, std::int64_t step, std::int64_t pass) {
    auto batch = line_batch(rank, step, pass);
    if (rank == 1 && step == 1) batch.push_back(batch[0]);
    return batch;
  };
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(plan, lines, communicator, clock);
    learner.begin();
    EXPECT_TRUE(line_step(learner, plan, communicator, 0, batches).is_applied);
    const auto outcome = line_step(learner, plan, communicator, 1, batches);
    EXPECT_FALSE(outcome.is_applied);
    EXPECT_FALSE(std::isfinite(outcome.gradient_norm));
    EXPECT_TRUE(learner.is_finite_here()) << "it has not reached the weights";
  });
}

TEST(LocalReplicas, say_the_same_loss_and_norm_on_all_ranks) {
  const Lines lines;
  auto plan = line_plan(sync_of(SyncKind::local, 100));
  plan.grad_clip = 0.1;
  std::vector<UpdateOutcome> outcomes(kRanks);
  on_gloo_ranks(kRanks, [&](Communicator& communicator, PhaseClock& clock) {
    Learner learner(plan, lines, communicator, clock);
    learner.begin();
    for (std::int64_t step = 0; step < 3; ++step)
      outcomes[static_cast<std::size_t>(communicator.rank())] =
          line_step(learner, plan, communicator, step);
  });
  EXPECT_EQ(outcomes[0].loss, outcomes[1].loss);
  EXPECT_EQ(outcomes[0].gradient_norm, outcomes[1].gradient_norm);
  EXPECT_GT(outcomes[0].gradient_norm, 0.1) << "before clipping";
}

}  // namespace
}  // namespace tj::trainer
