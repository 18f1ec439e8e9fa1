// A rank that hangs in the middle of its backward, whichever rank, gradient and order with the
// others: it is the one that is named. Ranks are threads with real connections between them.
#include <gtest/gtest.h>
#include <poll.h>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <condition_variable>
#include <latch>
#include <thread>

#include "tests/trainer/engine/gloo_ranks.h"
#include "tests/trainer/engine/gpt2_run.h"
#include "trainer/train/learner.h"
#include "trainer/watch/judge.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kRanks = 3;
constexpr seconds kWaitMax{30};
constexpr int kPollMilliseconds = 1;
constexpr Limits kLimits{.start = 60, .step = 0.5};
constexpr std::int64_t kHealthySteps = 2;  // the first backward decides the buckets of the second

/// True once `holds`, which others change, within kWaitMax.
bool becomes(const std::function<bool()>& holds) {
  const auto end = steady_clock::now() + kWaitMax;
  while (!holds()) {
    if (steady_clock::now() >= end) return false;
    ::poll(nullptr, 0, kPollMilliseconds);  // ranks are threads here, and want the cores
  }
  return true;
}

Gpt2Run run_of(Flags flags) {
  flags.insert({{"--data", "/text"},
                {"--out", "/out"},
                {"--threads", "1"},
                {"--layers", "2"},
                {"--width", "32"},
                {"--heads", "2"},
                {"--seq-len", "8"},
                {"--batch-size", "6"}});
  auto run = gpt2_run(flags, kRanks);
  TORCH_CHECK(run, run ? "" : describe(run.error()));
  return std::move(*run);
}

enum class Order { hangs_before_the_others_come, hangs_after_they_have_come };

struct Hang {
  int rank = 0;
  std::size_t parameter = 0;
  Order order = Order::hangs_before_the_others_come;
};

/// All ranks, one of which hangs in its last step.
class HangingRun {
 public:
  HangingRun(const Gpt2Run& run, const Hang& hang)
      : run_(run), hang_(hang), store_(c10::make_intrusive<c10d::HashStore>()) {
    for (int rank = 0; rank < kRanks; ++rank) threads_.emplace_back([this, rank] { train(rank); });
  }
  ~HangingRun() { go_on_.count_down(); }

  /// Empty when the hanging rank is accused before long; else who is, and of what.
  std::string wrong_accusation() {
    std::string last = "nobody is accused";
    const bool is_right = becomes([&] {
      const auto accused = judge(signs(), kLimits);
      if (accused && has_come_) last = accused->sentence;
      return has_come_ && accused && accused->rank == hang_.rank;
    });
    return is_right ? "" : last;
  }

 private:
  PhaseClock& clock(int rank) { return clocks_[static_cast<std::size_t>(rank)]; }

  std::vector<Sign> signs() {
    std::vector<Sign> signs;
    for (int rank = 0; rank < kRanks; ++rank)
      signs.push_back({.rank = rank, .node = "n", .seen = clock(rank).seen()});
    return signs;
  }

  void train(int rank) {
    at::set_num_threads(1);
    const auto communicator = join_gloo(store_, rank, kRanks, clock(rank));
    Learner learner(run_.plan, run_.workload, *communicator, clock(rank));
    learner.begin();
    clock(rank).enter(Phase::step);
    for (std::int64_t step = 0; step < kHealthySteps; ++step) one_step(learner, step);
    has_begun_.arrive_and_wait();  // nobody is ahead, and all have one number of collectives
    if (rank == hang_.rank) {
      learner.tensors()[hang_.parameter].register_hook([this](const at::Tensor&) {
        has_come_ = true;
        go_on_.wait();
      });
      if (hang_.order == Order::hangs_after_they_have_come) becomes([this] { return have_come(); });
    } else if (hang_.order == Order::hangs_before_the_others_come) {
      // Where gradients are sharded it may need the others before it comes so far.
      becomes([this] { return has_come_ || clock(hang_.rank).seen().is_in_collective; });
    }
    one_pass(learner, kHealthySteps);
  }

  /// Every other rank has finished its forward, and stands still longer than the limit.
  bool have_come() {
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != hang_.rank && clock(rank).seen().still_seconds < 2 * kLimits.step) return false;
    return true;
  }

  void one_pass(Learner& learner, std::int64_t step) {
    const auto tokens =
        torch::arange(run_.plan.micro_batch * (run_.workload.config().context + 1), torch::kInt64) +
        step;
    learner.pass({tokens.remainder(97).view({run_.plan.micro_batch, -1})}, 0,
                 run_.plan.batch_size * run_.workload.config().context);
  }

  void one_step(Learner& learner, std::int64_t step) {
    one_pass(learner, step);
    learner.update(1e-3, run_.plan.batch_size * run_.workload.config().context);
  }

  const Gpt2Run& run_;
  const Hang hang_;
  const c10::intrusive_ptr<c10d::Store> store_;
  std::array<PhaseClock, kRanks> clocks_;
  std::latch has_begun_{kRanks};
  std::latch go_on_{1};
  std::atomic<bool> has_come_ = false;
  std::vector<std::jthread> threads_;  // join first
};

class BackwardHang : public testing::TestWithParam<const char*> {};

TEST_P(BackwardHang, names_the_rank_that_has_not_come) {
  const std::string zero = GetParam();
  const auto run = run_of(zero == "0" ? Flags{} : Flags{{"--zero", zero}});
  for (const int rank : {0, 1, 2}) {
    for (const std::size_t parameter : {0, 9, 27}) {  // its last gradient, one inside, its first
      for (const Order order :
           {Order::hangs_before_the_others_come, Order::hangs_after_they_have_come}) {
        HangingRun hanging(run, {.rank = rank, .parameter = parameter, .order = order});
        EXPECT_EQ(hanging.wrong_accusation(), "")
            << "rank " << rank << " hangs at parameter " << parameter << ", "
            << (order == Order::hangs_after_they_have_come ? "after" : "before");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, BackwardHang, testing::Values("0", "2"));

}  // namespace
}  // namespace tj::trainer
