// What passes leave for later steps: a ring, the same on any number of ranks; and that buffers and
// tensors nobody else needs are saved as they are between two steps, and apart.
#include "trainer/workload/step_memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/temporary_folder.h"
#include "tests/trainer/engine/gloo_ranks.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/train/learner.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kRows = 16;
constexpr std::int64_t kRowBytes = 3;
constexpr std::int64_t kBatch = 12;

at::Tensor rows_of(std::initializer_list<std::int64_t> values) {
  std::vector<at::Tensor> rows;
  for (const auto value : values)
    rows.push_back(torch::full({1, kRowBytes}, value, at::TensorOptions().dtype(at::kByte)));
  return at::cat(rows);
}

std::vector<std::int64_t> values_of(const StepMemory& memory) {
  std::vector<std::int64_t> values;
  for (std::int64_t row = 0; row < memory.filled(); ++row)
    values.push_back(memory.rows()[row][0].item<std::int64_t>());
  return values;
}

TEST(StepMemory, the_oldest_rows_are_written_over) {
  StepMemory memory({.name = "m", .rows = 4, .row_bytes = kRowBytes}, at::kCPU);
  EXPECT_EQ(memory.filled(), 0);
  memory.append(rows_of({1, 2, 3}));
  EXPECT_EQ(values_of(memory), (std::vector<std::int64_t>{1, 2, 3}));
  memory.append(rows_of({4, 5}));
  EXPECT_EQ(values_of(memory), (std::vector<std::int64_t>{5, 2, 3, 4}));
  memory.append(rows_of({6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(values_of(memory), (std::vector<std::int64_t>{9, 10, 11, 8}));
  EXPECT_EQ(memory.appended(), 11);
}

std::vector<TensorSpec> specs() {
  const TensorInit ones{.kind = TensorInit::Kind::ones};
  return {{.name = "w", .shape = {1}, .init = ones},
          {.name = "judge", .shape = {1}, .init = ones, .is_published = false},
          {.name = "mean", .shape = {1}, .kind = TensorKind::buffer, .is_published = false}};
}

/// Each sample leaves two rows of its number, and each pass adds 1 to a mean.
class RememberingModel final : public Model {
 public:
  RememberingModel(const ModelOptions& options, const ModelKeeper& keeper)
      : hooks_(keeper.hooks),
        memory_(keeper.memory),
        tensors_(initial_tensors(specs(), options, keeper)) {}

  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override {
    EXPECT_NE(memory_, nullptr);
    const auto& x = batch.at(0);
    {
      const at::NoGradGuard no_gradients;
      tensors_[2].add_(1);
    }
    const auto loss =
        in_block(hooks_, 0, [&] { return (x * tensors_[0] * tensors_[1]).square().sum(); });
    const auto numbers =
        (torch::arange(x.size(0)) + first_sample.value_or(0)).to(at::kByte).repeat_interleave(2);
    return {.loss = loss,
            .metrics = {},
            .remembered = numbers.unsqueeze(1).expand({-1, kRowBytes}).contiguous()};
  }
  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  BlockHooks* hooks_;
  const StepMemory* memory_;
  std::vector<at::Tensor> tensors_;
};

class Remembering final : public Workload {
 public:
  void configure(FlagReader&) override {}
  OpenedData open_data(const DataPaths&) override { return {}; }
  std::vector<TensorSpec> tensors() const override { return specs(); }
  std::optional<MemorySpec> memory() const override {
    return MemorySpec{.name = "rows", .rows = kRows, .row_bytes = kRowBytes};
  }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<RememberingModel>(options, keeper);
  }
  SampleCost cost() const override { return {}; }
  ModelShape shape() const override { return {}; }
  std::int64_t hidden_width() const override { return 1; }
};

TrainPlan plan_of(int stage, std::int64_t passes) {
  TrainPlan plan;
  plan.accumulation = passes;
  plan.ema_decay = 0.9;
  plan.zero = {.stage = stage};
  return plan;
}

/// All passes of a step, as the loop makes them.
void pass_all(Learner& learner, const TrainPlan& plan, const Communicator& communicator,
              std::int64_t step) {
  const auto of_pass = kBatch / (communicator.world_size() * plan.accumulation);
  for (std::int64_t pass = 0; pass < plan.accumulation; ++pass) {
    const auto place = communicator.rank() * plan.accumulation + pass;
    learner.pass({torch::ones({of_pass})}, step * kBatch + place * of_pass, kBatch);
  }
}

TEST(StepMemory, is_the_same_on_any_number_of_ranks_and_in_the_order_of_the_samples) {
  // Two steps of 12 samples leave 48 rows; the last 16 of them are of the samples 16 to 23.
  std::vector<std::int64_t> wanted;
  for (std::int64_t row = 0; row < kRows; ++row) wanted.push_back(16 + row / 2);
  const Remembering workload;
  for (const int ranks : {1, 2, 3}) {
    for (const std::int64_t passes : {1, 2}) {
      for (const int stage : {0, 3}) {
        const auto plan = plan_of(stage, passes);
        on_gloo_ranks(ranks, [&](Communicator& communicator, PhaseClock& clock) {
          Learner learner(plan, workload, communicator, clock);
          learner.begin();
          for (std::int64_t step = 0; step < 2; ++step) {
            pass_all(learner, plan, communicator, step);
            learner.update(0.01, kBatch);
          }
          EXPECT_EQ(learner.remembered_rows(), 48);
          const auto state = learner.state();
          ASSERT_EQ(state.memory.size(), 1U);
          EXPECT_EQ(state.memory[0].name, "rows");
          const auto first = state.memory[0].tensor.select(1, 0).to(at::kLong);
          EXPECT_TRUE(first.equal(torch::tensor(wanted))) << ranks << " ranks: " << first;
        });
      }
    }
  }
}

TEST(State, what_is_not_published_is_apart_and_buffers_are_those_between_two_steps) {
  const Remembering workload;
  for (const int stage : {0, 2}) {
    const auto plan = plan_of(stage, 1);
    on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock& clock) {
      Learner learner(plan, workload, communicator, clock);
      const auto state = learner.state();
      state.training.back().tensor.fill_(5);  // as a checkpoint does
      learner.begin();
      ASSERT_EQ(state.model.size(), 1U);
      EXPECT_EQ(state.model[0].name, "w");
      ASSERT_EQ(state.ema.size(), 1U);
      EXPECT_EQ(state.ema[0].name, "w");
      ASSERT_EQ(state.training.size(), 2U);
      EXPECT_EQ(state.training[0].name, "judge");
      EXPECT_EQ(state.training[1].name, "mean");
      EXPECT_EQ(state.optimizer.size(), 4U);
      const auto saved = [&] { return state.training[1].tensor.item<double>(); };
      pass_all(learner, plan, communicator, 0);
      EXPECT_EQ(saved(), 5) << "a save that began before the step still copies it";
      learner.update(0.01, kBatch);
      EXPECT_EQ(saved(), 6);
    });
  }
}

TEST(State, bytes_are_saved_as_such_and_read_back_on_all_ranks) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "memory.safetensors";
  const auto bytes = torch::arange(256).to(at::kByte).view({32, 8});
  const auto named = [](const at::Tensor& tensor) {
    return NamedTensor{.name = "rows", .tensor = tensor, .shape = {32, 8}};
  };
  StateTensors state;
  state.memory = {named(bytes)};
  const auto alone = make_single_communicator();
  const auto groups = state_groups(state, *alone, /*all_write=*/false, nullptr);
  ASSERT_EQ(groups.back().stem, kMemoryStem);
  const auto& saved = groups.back().tensors.at(0);
  EXPECT_EQ(saved.dtype, "U8");
  std::vector<std::byte> copied(saved.bytes());
  ASSERT_EQ(copied.size(), 256U);
  saved.copy_to(copied);
  const std::vector<TensorBytes> tensors{
      {.name = saved.name, .shape = saved.shape, .bytes = copied, .dtype = saved.dtype}};
  ASSERT_TRUE(write_safetensors(file, tensors, {}));
  on_gloo_ranks(2, [&](Communicator& communicator, PhaseClock&) {
    const auto place = torch::zeros({32, 8}, at::kByte);
    EXPECT_TRUE(fill_bytes(communicator, named(place), file));
    EXPECT_TRUE(place.equal(bytes));
    const auto other = torch::zeros({8, 8}, at::kByte);
    const auto filled =
        fill_bytes(communicator, {.name = "rows", .tensor = other, .shape = {8, 8}}, file);
    EXPECT_EQ(
        filled ? "" : describe(filled.error()),
        communicator.rank() == 0 ? "memory.safetensors: has no bytes [8, 8] of the name rows" : "");
  });
}

}  // namespace
}  // namespace tj::trainer
