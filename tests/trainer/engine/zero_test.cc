#include "trainer/train/zero/zero.h"
#include "tests/trainer/engine/gpt2_training.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "trainer/train/learner.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {
namespace {

/// Counts the bytes of all tensors of the process that are alive. Their sizes lie beside them: for
/// scratch space torch asks for blocks whose data and context are one pointer (raw_allocate()).
class CountingAllocator final : public c10::Allocator {
 public:
  std::int64_t live_bytes() const {
    const std::lock_guard lock(mutex_);
    return live_bytes_;
  }

  at::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &drop, at::kCPU};
    void* const block = std::aligned_alloc(kAlignment, rounded(bytes));
    TORCH_CHECK(block != nullptr, "no memory for ", bytes, " bytes");
    note(block, bytes);
    return {block, block, &drop, at::kCPU};
  }
  at::DeleterFnPtr raw_deleter() const override { return &drop; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static std::size_t rounded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  static void drop(void* block);
  void note(void* block, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_of_[block] = bytes;
    live_bytes_ += static_cast<std::int64_t>(bytes);
  }
  void forget(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = bytes_of_.find(block);
    live_bytes_ -= static_cast<std::int64_t>(found->second);
    bytes_of_.erase(found);
  }

  mutable std::mutex mutex_;  // guards the rest
  std::unordered_map<void*, std::size_t> bytes_of_;
  std::int64_t live_bytes_ = 0;
};

/// Never destroyed: torch's own static tensors are dropped after everything of this file.
CountingAllocator& counting_allocator() {
  static auto* const instance = new CountingAllocator;
  return *instance;
}

void CountingAllocator::drop(void* block) {
  if (block == nullptr) return;
  counting_allocator().forget(block);
  std::free(block);
}

const bool kIsCounting = [] {
  c10::SetCPUAllocator(&counting_allocator(), /*priority=*/1);
  return true;
}();

TEST(CountingAllocator, gives_raw_blocks_as_some_kernels_of_torch_ask_for_them) {
  // With AVX-512 BF16, addmm packs its matrices so; on other CPUs only this test does.
  auto* const allocator = c10::GetCPUAllocator();
  const auto before = counting_allocator().live_bytes();
  void* const block = allocator->raw_allocate(100);
  EXPECT_EQ(counting_allocator().live_bytes() - before, 100);
  allocator->raw_deallocate(block);
  EXPECT_EQ(counting_allocator().live_bytes(), before);
}

std::string name_of(int stage, int ranks, int passes) {
  return "stage " + std::to_string(stage) + ", " + std::to_string(ranks) + " ranks, " +
         std::to_string(passes) + " passes";
}

TEST(Zero, deterministic_has_the_bits_of_plain_training_at_each_stage_and_size) {
  const Flags flags{{"--deterministic", "true"}, {"--ema", "0.9"}, {"--dropout", "0.1"}};
  const auto wanted = train(small_with(flags), 1);
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 4}) {
      for (const int passes : {1, 2, 4}) {
        auto with = small_with(flags);
        with["--zero"] = std::to_string(stage);
        with["--accumulation"] = std::to_string(passes);
        const auto got = train(with, ranks);
        EXPECT_EQ(got.losses, wanted.losses) << name_of(stage, ranks, passes);
        ASSERT_EQ(got.state.size(), wanted.state.size());
        for (const auto& [name, tensor] : wanted.state)
          EXPECT_TRUE(got.state.at(name).equal(tensor))
              << name << ", " << name_of(stage, ranks, passes);
      }
    }
  }
}

TEST(Zero, each_stage_learns_as_plain_training_within_a_bound) {
  // bfloat16 weights round where autocast rounds, and in addition the embeddings and the norms.
  for (const auto& [precision, bound] : {std::pair("fp32", 1e-5), std::pair("bf16", 1e-2)}) {
    for (const auto& [batch, worlds] :
         {std::pair("16", std::vector{1, 2, 4}), std::pair("12", std::vector{3})}) {
      const Flags alone{{"--precision", precision}, {"--batch-size", batch}};
      const auto wanted = train(small_with(alone), 1).losses;
      for (const int stage : {1, 2, 3}) {
        for (const int ranks : worlds) {
          for (const int passes : {1, 2, 4}) {
            auto flags = small_with(alone);
            flags["--zero"] = std::to_string(stage);
            flags["--accumulation"] = std::to_string(passes);
            expect_near(train(flags, ranks).losses, wanted, bound,
                        std::string(precision) + ", " + name_of(stage, ranks, passes));
          }
        }
      }
    }
  }
}

TEST(Zero, fp16_scales_its_loss_and_learns_as_plain_training) {
  const auto wanted = train(small_with({}), 1).losses;
  const auto got = train(small_with({{"--precision", "fp16"}, {"--zero", "3"}}), 2).losses;
  expect_near(got, wanted, 1e-2, "fp16");
}

struct Overflowed {
  UpdateOutcome outcome;
  double scale = 0;  // of the loss, after it
  double loss_again = 0;
};

/// A step that each rank sees, then one whose gradients overflow fp16 on the culprit alone, and
/// that one again. By rank; `before` and `after` are the state around the overflow.
std::vector<Overflowed> overflow(const Flags& flags, int ranks, int culprit, Tensors& before,
                                 Tensors& after) {
  const auto run = run_of(flags, ranks);
  std::vector<Overflowed> seen(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    PhaseClock clock;
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    train_step(learner, run, rank, 0);
    collect(learner.state().model, "", rank, before);
    collect(learner.state().optimizer, "", rank, before);
    const double scale = learner.loss_scale().scale;
    if (rank == culprit) learner.loss_scale().scale = 1e30;
    pass_all(learner, run, rank, 1);
    learner.loss_scale().scale = scale;
    auto& mine = seen[static_cast<std::size_t>(rank)];
    mine.outcome = learner.update(kLr, targets_of(run));
    mine.scale = learner.loss_scale().scale;
    collect(learner.state().model, "", rank, after);
    collect(learner.state().optimizer, "", rank, after);
    mine.loss_again = train_step(learner, run, rank, 1);
  });
  return seen;
}

TEST(Zero, fp16_an_overflow_on_any_rank_leaves_the_state_of_all_as_it_was) {
  constexpr int kRanks = 3;
  for (const int stage : {1, 2, 3}) {
    for (int culprit = 0; culprit < kRanks; ++culprit) {
      Tensors before, after;
      const auto flags = small_with(
          {{"--precision", "fp16"}, {"--batch-size", "12"}, {"--zero", std::to_string(stage)}});
      for (const auto& seen : overflow(flags, kRanks, culprit, before, after)) {
        EXPECT_FALSE(seen.outcome.is_applied) << "stage " << stage << ", rank " << culprit;
        EXPECT_EQ(seen.scale, LossScale{}.scale / 2);
        EXPECT_EQ(seen.outcome.loss, seen.loss_again) << "of the same weights";
      }
      ASSERT_FALSE(before.empty());
      for (const auto& [name, tensor] : before)
        EXPECT_TRUE(after.at(name).equal(tensor)) << name << ", stage " << stage;
    }
  }
}

TEST(Zero, recomputation_and_every_way_to_gather_change_no_bit) {
  const Flags deterministic{{"--deterministic", "true"}, {"--zero", "3"}, {"--zero-persist", "0"}};
  const auto wanted = train(small_with(deterministic), 2);
  for (const Flags& more : {Flags{{"--recompute", "true"}}, Flags{{"--zero-prefetch", "0"}},
                            Flags{{"--zero-prefetch", "1000000"}},
                            Flags{{"--zero-reuse", "1000000"}}, Flags{{"--zero-live-max", "0"}},
                            Flags{{"--zero-reuse", "1000000"}, {"--accumulation", "2"}}}) {
    auto flags = small_with(deterministic);
    flags.insert(more.begin(), more.end());
    EXPECT_EQ(train(flags, 2).losses, wanted.losses) << more.begin()->first;
  }
}

struct Measured {
  double bytes_per_parameter = 0;    // of tensors alive between two steps, per rank
  double counted_per_parameter = 0;  // by the learner itself, when an update begins
  double volume_per_parameter = 0;   // of one step, as the law counts
};

Measured measure(const Flags& more, int ranks) {
  Flags flags{{"--layers", "4"},
              {"--width", "128"},
              {"--heads", "4"},
              {"--seq-len", "32"},
              {"--batch-size", "8"}};
  flags.insert(more.begin(), more.end());
  const auto run = run_of(flags, ranks);
  const auto parameters = static_cast<double>(parameter_count(run.workload.config()));
  Measured measured;
  std::barrier everybody(ranks);
  const auto before = counting_allocator().live_bytes();
  on_ranks(ranks, [&](Communicator& communicator) {
    PhaseClock clock;
    Learner learner(run.plan, run.workload, communicator, clock);
    learner.begin();
    train_step(learner, run, communicator.rank(), 0);
    const auto sent = communicator.volume().elements_sent;
    train_step(learner, run, communicator.rank(), 1);
    everybody.arrive_and_wait();
    if (communicator.rank() == 0) {
      const double live = static_cast<double>(counting_allocator().live_bytes() - before);
      measured = {
          .bytes_per_parameter = live / ranks / parameters,
          .counted_per_parameter = static_cast<double>(learner.state_bytes()) / parameters,
          .volume_per_parameter = static_cast<double>(communicator.volume().elements_sent - sent) *
                                  ranks / std::max(1, ranks - 1) / parameters};
    }
    everybody.arrive_and_wait();
  });
  return measured;
}

TEST(Zero, memory_and_volume_follow_the_laws) {
  for (const std::string precision : {"fp32", "bf16"}) {
    for (const int stage : {1, 2, 3}) {
      for (const int ranks : {1, 2, 4}) {
        const auto got =
            measure({{"--precision", precision}, {"--zero", std::to_string(stage)}}, ranks);
        const double n = ranks;
        // float32 weights and gradients and two moments, or bfloat16 ones and a float32 copy.
        const double fp32[] = {8 + 8 / n, 4 + 12 / n, 16 / n};
        const double bf16[] = {4 + 12 / n, 2 + 14 / n, 16 / n};
        const double law = (precision == "fp32" ? fp32 : bf16)[stage - 1];
        const auto what = precision + ", " + name_of(stage, ranks, 1);
        EXPECT_NEAR(got.bytes_per_parameter / law, 1.0, 0.1) << what;
        EXPECT_NEAR(got.counted_per_parameter / law, 1.0, 0.1) << what;
        const double moved = ranks == 1 ? 0 : stage == 3 ? 3 : 2;
        EXPECT_NEAR(got.volume_per_parameter, moved, 0.05 * moved) << what;
        std::printf("%s: %.2f bytes per parameter (law %.2f), %.2f counted, %.3f moved\n",
                    what.c_str(), got.bytes_per_parameter, law, got.counted_per_parameter,
                    got.volume_per_parameter);
      }
    }
  }
}

constexpr std::int64_t kWidth = 32;

/// Three layers and a frozen one; a rank may leave out any of the three.
struct Chain {
  std::vector<TensorSpec> specs{{"a", {kWidth, kWidth}},
                                {"b", {kWidth, kWidth}},
                                {"c", {kWidth, kWidth}},
                                {"frozen", {kWidth}, {}, TensorKind::frozen}};
  std::vector<at::Tensor> initial;
  Chain() {
    auto generator = at::detail::createCPUGenerator(3);
    for (const auto& spec : specs) initial.push_back(torch::randn(spec.shape, generator) * 0.2);
  }
};

bool leaves_out(int rank, std::int64_t step, std::size_t block) {
  return rank % 2 == 1 && static_cast<std::size_t>(step) % 3 == block;
}

at::Tensor loss_of(const std::vector<at::Tensor>& tensors, BlockHooks* hooks, int rank,
                   std::int64_t step) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank * 100 + step));
  auto x = torch::randn({4, kWidth}, generator) * tensors[3];
  for (std::size_t block = 0; block < 3; ++block) {
    if (leaves_out(rank, step, block)) continue;
    if (hooks != nullptr) hooks->before(block);
    x = torch::tanh(x.matmul(tensors[block]));
    if (hooks != nullptr) hooks->after(block, x);
  }
  return x.pow(2).sum();
}

std::vector<at::Tensor> trained_whole(const Chain& chain, int ranks, std::int64_t steps) {
  std::vector<at::Tensor> tensors;
  for (const auto& tensor : chain.initial) tensors.push_back(tensor.clone());
  const std::vector<at::Tensor> trained(tensors.begin(), tensors.begin() + 3);
  for (const auto& tensor : trained) tensor.requires_grad_(true);
  AdamW optimizer(trained, std::vector<UpdateRule>(3));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (const auto& tensor : trained) tensor.mutable_grad() = torch::zeros_like(tensor);
    for (int rank = 0; rank < ranks; ++rank) loss_of(tensors, nullptr, rank, step).backward();
    optimizer.step(kLr);
  }
  return trained;
}

TEST(Zero, a_rank_that_leaves_out_a_block_holds_nobody_up) {
  const Chain chain;
  constexpr std::int64_t kChainSteps = 6;
  constexpr int kRanks = 4;
  const auto wanted = trained_whole(chain, kRanks, kChainSteps);
  for (const auto& [stage, group] : {std::pair(1, kRanks), {2, kRanks}, {3, kRanks}, {3, 2}}) {
    Tensors got;
    on_ranks(kRanks, [&](Communicator& communicator) {
      Zero zero({.tensors = chain.specs,
                 .blocks = {{.tensors = {3, 0}}, {.tensors = {1}}, {.tensors = {2}}},
                 .rules = std::vector<UpdateRule>(4),
                 .options = {.stage = stage, .group_size = group},
                 .kind = {.stage = stage}},
                communicator);
      std::vector<at::Tensor> tensors;
      for (std::size_t tensor = 0; tensor < chain.specs.size(); ++tensor)
        tensors.push_back(zero.place(tensor, chain.initial[tensor]));
      zero.begin();
      for (std::int64_t step = 0; step < kChainSteps; ++step) {
        zero.begin_pass(/*is_last=*/true);
        loss_of(tensors, &zero, communicator.rank(), step).backward();
        zero.end_pass();
        zero.finish_gradients();
        zero.update(kLr);
        zero.clear();
      }
      collect(zero.state().model, "", communicator.rank(), got);
    });
    ASSERT_EQ(got.size(), 3U);
    for (std::size_t tensor = 0; tensor < 3; ++tensor)
      EXPECT_TRUE(
          torch::allclose(got.at(chain.specs[tensor].name), wanted[tensor].flatten(), 1e-4, 1e-5))
          << "stage " << stage << ", tensor " << tensor;
  }
}

/// Of all blocks in order, then of some again, back and forth.
at::Tensor wandered(const std::vector<at::Tensor>& tensors, BlockHooks* hooks) {
  auto x = torch::ones({2, kWidth}) * tensors[3];
  for (const std::size_t block : {0, 1, 2, 1, 0, 2, 2}) {
    if (hooks != nullptr) hooks->before(block);
    x = torch::tanh(x.matmul(tensors[block]));
    if (hooks != nullptr) hooks->after(block, x);
  }
  return x;
}

TEST(Zero, a_pass_that_holds_its_blocks_does_them_again_and_lets_them_go_at_its_end) {
  const Chain chain;
  const at::NoGradGuard no_gradients;
  const auto wanted = wandered(chain.initial, nullptr);
  for (const int group : {1, 2, 4}) {
    on_ranks(4, [&](Communicator& communicator) {
      const at::NoGradGuard none_here_either;
      // The second block has a tensor of the first, too.
      Zero zero({.tensors = chain.specs,
                 .blocks = {{.tensors = {3, 0}}, {.tensors = {1, 0}}, {.tensors = {2}}},
                 .rules = std::vector<UpdateRule>(4),
                 .options = {.stage = 3, .group_size = group},
                 .kind = {.stage = 3}},
                communicator);
      std::vector<at::Tensor> tensors;
      for (std::size_t tensor = 0; tensor < chain.specs.size(); ++tensor)
        tensors.push_back(zero.place(tensor, chain.initial[tensor]));
      zero.begin();
      const auto before = zero.held_bytes();
      for (int pass = 0; pass < 2; ++pass) {
        zero.begin_pass(/*is_last=*/false);
        zero.hold();
        EXPECT_TRUE(torch::allclose(wandered(tensors, &zero), wanted, 1e-5, 1e-6));
        EXPECT_GT(zero.held_bytes(), before);
        zero.end_forward();
        EXPECT_EQ(zero.held_bytes(), before);
      }
      zero.begin_pass(/*is_last=*/false);
      zero.before(1);
      EXPECT_THROW(zero.before(0), c10::Error) << "the next pass does not hold";
      zero.end_forward();
    });
  }
}

TEST(Zero, blocks_out_of_order_are_refused) {
  const Chain chain;
  const auto alone = make_single_communicator();
  Zero zero({.tensors = {chain.specs[0], chain.specs[1]},
             .blocks = {{.tensors = {0}}, {.tensors = {1}}},
             .rules = std::vector<UpdateRule>(2),
             .options = {.stage = 3},
             .kind = {.stage = 3}},
            *alone);
  zero.begin();
  zero.begin_pass(true);
  zero.before(1);
  EXPECT_THROW(zero.before(0), c10::Error);
}

}  // namespace
}  // namespace tj::trainer
