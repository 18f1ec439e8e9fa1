// How often the host of a rank waits for its device in a step. On the CPU nobody waits; the calls
// that would make it wait on a GPU are the same ones.
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <string_view>

#include "tests/trainer/engine/gpt2_run.h"
#include "tests/trainer/engine/thread_ranks.h"
#include "trainer/train/learner.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {
namespace {

/// Counts, on its thread, numbers that are asked for and copies to a device that is named. What an
/// operation of torch calls inside is left out: there the kernels of the CPU ask for numbers, where
/// those of a GPU read them from its memory.
class HostWaits {
 public:
  HostWaits()
      : handle_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&begin, &end).needsInputs(true))) {
    count_ = 0;
    depth_ = 0;
  }
  HostWaits(const HostWaits&) = delete;
  HostWaits& operator=(const HostWaits&) = delete;
  ~HostWaits() { at::removeCallback(handle_); }
  int count() const { return count_; }

 private:
  static bool waits(const at::RecordFunction& call) {
    const std::string_view name = call.name();
    if (name == "aten::to")
      return std::ranges::any_of(call.inputs(), [](const auto& input) { return input.isDevice(); });
    return name == "aten::item" || name == "aten::equal" || name == "aten::nonzero";
  }

  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
    if (depth_++ == 0 && waits(call)) ++count_;
    return nullptr;
  }

  static void end(const at::RecordFunction&, at::ObserverContext*) { --depth_; }

  static thread_local int count_;
  static thread_local int depth_;
  at::CallbackHandle handle_;
};
thread_local int HostWaits::count_ = 0;
thread_local int HostWaits::depth_ = 0;

Gpt2Run run_of(const std::string& precision, int stage, int ranks) {
  auto run = gpt2_run({{"--layers", "2"},
                       {"--width", "32"},
                       {"--heads", "2"},
                       {"--seq-len", "16"},
                       {"--batch-size", "8"},
                       {"--accumulation", "2"},
                       {"--ema", "0.9"},
                       {"--precision", precision},
                       {"--zero", std::to_string(stage)},
                       {"--data", "/text"},
                       {"--out", "/out"}},
                      ranks);
  TORCH_CHECK(run, run ? "" : describe(run.error()));
  return std::move(*run);
}

void train_step(Learner& learner, const Gpt2Run& run, const at::Tensor& tokens) {
  const auto targets = run.plan.batch_size * run.workload.config().context;
  for (std::int64_t pass = 0; pass < run.plan.accumulation; ++pass)
    learner.pass({tokens}, pass * run.plan.micro_batch, targets);
  learner.update(1e-3, targets);
}

TEST(HostWaits, of_a_step_there_is_one) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    for (const int stage : {0, 1, 2, 3}) {
      for (const int ranks : {1, 2}) {
        if (stage == 0 && ranks > 1) continue;  // its sums over ranks need a process group
        const auto run = run_of(precision, stage, ranks);
        on_ranks(ranks, [&](Communicator& communicator) {
          PhaseClock clock;
          Learner learner(run.plan, run.workload, communicator, clock);
          learner.begin();
          const auto tokens = torch::full({run.plan.micro_batch, run.workload.config().context + 1},
                                          7, torch::kInt64);
          train_step(learner, run, tokens);  // the first also counts memory
          const HostWaits waits;
          train_step(learner, run, tokens);
          EXPECT_EQ(waits.count(), 1) << precision << ", stage " << stage << ", rank "
                                      << communicator.rank() << " of " << ranks;
        });
      }
    }
  }
}

}  // namespace
}  // namespace tj::trainer
