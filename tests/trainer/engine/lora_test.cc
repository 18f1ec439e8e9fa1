// --lora: a model that knows nothing of adapters trains them, with the gradients that autograd
// gives where the product stands in the model.
#include <algorithm>

#include "tests/trainer/engine/gpt2_training.h"
#include "trainer/train/adamw.h"
#include "trainer/train/tuning.h"
#include "trainer/values/glob.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kWidth = 5;
constexpr std::int64_t kRows = 4;

/// y = tanh(x u) v, then back through u, which both blocks use.
at::Tensor tied_loss(const at::Tensor& x, const at::Tensor& u, const at::Tensor& v,
                     BlockHooks* hooks) {
  const auto hidden = in_block(hooks, 0, [&] { return at::tanh(at::matmul(x, u)); });
  const auto y = in_block(hooks, 1, [&] { return at::matmul(at::matmul(hidden, v), u.t()); });
  return (y - 1).square().sum();
}

class TiedModel final : public Model {
 public:
  TiedModel(const std::vector<TensorSpec>& specs, const ModelOptions& options,
            const ModelKeeper& keeper)
      : hooks_(keeper.hooks), tensors_(initial_tensors(specs, options, keeper)) {}
  PassSums pass(const Batch& batch, std::optional<std::int64_t>) const override {
    return {.loss = tied_loss(batch.at(0), tensors_[0], tensors_[1], hooks_), .metrics = {}};
  }
  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  BlockHooks* hooks_;
  std::vector<at::Tensor> tensors_;
};

class Tied final : public Workload {
 public:
  void configure(FlagReader&) override {}
  OpenedData open_data(const DataPaths&) override { return {}; }
  std::vector<TensorSpec> tensors() const override {
    const TensorInit normal{.kind = TensorInit::Kind::normal, .scale = 0.5};
    return {{.name = "u.weight", .shape = {kWidth, kWidth + 1}, .init = normal},
            {.name = "v.weight",
             .shape = {kWidth + 1, kWidth + 1},
             .init = normal,
             .layout = MatrixLayout::inputs_outputs}};
  }
  std::vector<ModelBlock> blocks() const override {
    return {{.tensors = {0}}, {.tensors = {1, 0}}};
  }
  std::unique_ptr<Model> make_model(const ModelOptions& options,
                                    const ModelKeeper& keeper) const override {
    return std::make_unique<TiedModel>(tensors(), options, keeper);
  }
  SampleCost cost() const override { return {}; }
  ModelShape shape() const override { return {}; }
  std::int64_t hidden_width() const override { return kWidth; }
};

at::Tensor rows_of(std::int64_t step) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(step) + 3);
  return torch::randn({kRows, kWidth}, generator);
}

TrainPlan tied_plan() {
  TrainPlan plan;
  plan.batch_size = plan.micro_batch = kRows;
  plan.grad_clip = 0;
  plan.rule = {};
  plan.lora = {.rank = 2, .alpha = 6, .targets = {"*"}};
  return plan;
}

TEST(Lora, gradients_are_those_of_the_product_in_the_model) {
  const Tied tied;
  const auto plan = tied_plan();
  const auto alone = make_single_communicator();
  PhaseClock clock;
  Learner learner(plan, tied, *alone, clock);
  learner.begin();
  const auto& tensors = learner.tensors();
  const auto targets = lora_targets_of(plan, tied);
  std::vector<at::Tensor> adapters, bases;
  for (const auto& target : targets) {
    bases.push_back(tensors[target.base].detach().clone());
    for (const auto index : {target.a, target.b})
      adapters.push_back(tensors[index].detach().clone().requires_grad_());
  }
  AdamW optimizer(adapters, std::vector<UpdateRule>(adapters.size()));
  for (std::int64_t step = 0; step < 5; ++step) {
    const auto merged = [&](std::size_t i) {
      const auto change = at::matmul(adapters[2 * i + 1], adapters[2 * i]);
      return bases[i] + plan.lora.scale() * (targets[i].is_transposed ? change.t() : change);
    };
    for (const auto& adapter : adapters) adapter.mutable_grad().reset();
    (tied_loss(rows_of(step), merged(0), merged(1), nullptr) / kRows).backward();
    optimizer.step(kLr);
    learner.pass({rows_of(step)}, 0, kRows);
    learner.update(kLr, kRows);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      EXPECT_TRUE(torch::allclose(tensors[targets[i].a], adapters[2 * i], 1e-5, 1e-6)) << step;
      EXPECT_TRUE(torch::allclose(tensors[targets[i].b], adapters[2 * i + 1], 1e-5, 1e-6)) << step;
      EXPECT_TRUE(torch::allclose(tensors[targets[i].weight].detach(), merged(i), 1e-5, 1e-6));
      EXPECT_TRUE(tensors[targets[i].base].equal(bases[i]));
    }
  }
}

const Flags kLora{{"--lora", "4"},
                  {"--lora-alpha", "8"},
                  {"--lora-targets", "*.c_attn.weight,*.mlp.*.weight,transformer.wte.weight"},
                  {"--lora-also", "*.ln_f.*"}};

Flags lora_with(Flags more) {
  more.insert(kLora.begin(), kLora.end());
  return small_with(more);
}

TEST(Lora, has_the_same_bits_at_each_stage_size_and_group) {
  const Flags flags{{"--deterministic", "true"}, {"--ema", "0.9"}};
  const auto wanted = train(lora_with(flags), 1);
  EXPECT_LT(wanted.losses.back(), wanted.losses.front());
  for (const int stage : {0, 1, 2, 3}) {
    for (const auto& [ranks, group] : {std::pair(1, 1), {2, 2}, {4, 2}}) {
      auto with = flags;
      with["--zero"] = std::to_string(stage);
      if (stage > 0) with["--zero-group"] = std::to_string(group);
      const auto got = train(lora_with(with), ranks);
      EXPECT_EQ(got.losses, wanted.losses) << "stage " << stage << ", " << ranks << " ranks";
      ASSERT_EQ(got.state.size(), wanted.state.size());
      for (const auto& [name, tensor] : wanted.state)
        EXPECT_TRUE(got.state.at(name).equal(tensor)) << name << ", stage " << stage;
    }
  }
}

TEST(Lora, each_stage_learns_as_one_rank_alone_within_a_bound) {
  for (const auto& [precision, bound] : {std::pair("fp32", 1e-5), std::pair("bf16", 1e-2)}) {
    const auto wanted = train(lora_with({{"--precision", precision}}), 1).losses;
    for (const int stage : {1, 2, 3}) {
      const Flags flags{{"--precision", precision},
                        {"--zero", std::to_string(stage)},
                        {"--accumulation", "2"},
                        {"--zero-group", "2"}};
      expect_near(train(lora_with(flags), 4).losses, wanted, bound,
                  std::string(precision) + ", stage " + std::to_string(stage));
    }
  }
}

TEST(Lora, layers_that_are_run_again_give_the_same) {
  for (const char* const stage : {"0", "3"}) {
    const auto wanted = train(lora_with({{"--zero", stage}}), 1).losses;
    EXPECT_EQ(train(lora_with({{"--zero", stage}, {"--recompute", "true"}}), 1).losses, wanted);
  }
}

TEST(Lora, a_checkpoint_has_merged_weights_and_what_the_training_needs_apart) {
  const auto run = run_of(lora_with({{"--ema", "0.5"}}), 1);
  const auto alone = make_single_communicator();
  PhaseClock clock;
  Learner learner(run.plan, run.workload, *alone, clock);
  learner.begin();
  Tensors before, weights, apart, averages;
  collect(learner.state().model, "", 0, before);
  for (auto& [name, tensor] : before) tensor = tensor.clone();
  train_step(learner, run, 0, 0);
  const auto state = learner.state();
  collect(state.model, "", 0, weights);
  collect(state.training, "", 0, apart);
  collect(state.ema, "", 0, averages);
  for (const auto& [name, tensor] : before) {
    const bool is_target = std::ranges::any_of(
        run.plan.lora.targets, [&](const auto& pattern) { return matches(pattern, name); });
    const bool is_trained = is_target || matches("*.ln_f.*", name);
    EXPECT_EQ(weights.at(name).equal(tensor), !is_trained) << name;
    EXPECT_EQ(averages.contains(name), is_trained) << name;
    if (is_trained) {
      EXPECT_TRUE(averages.at(name).equal(at::lerp(tensor, weights.at(name), 0.5))) << name;
    }
    if (!is_target) continue;
    const auto module = name.substr(0, name.size() - std::string(".weight").size());
    EXPECT_TRUE(apart.at("base_model.model." + module + ".base_layer.weight").equal(tensor))
        << name;
  }
  EXPECT_EQ(weights.size(), before.size());
  EXPECT_EQ(apart.size(), 3 * lora_targets_of(run.plan, run.workload).size());
}

TEST(Lora, flags_that_do_not_go_together_are_named) {
  const auto error_of = [](Flags flags) {
    flags.insert({{"--data", "/text"}, {"--out", "/out"}});
    const auto run = gpt2_run(flags, 2);
    return run ? std::string() : describe(run.error());
  };
  EXPECT_EQ(error_of({{"--lora-alpha", "8"}}), "--lora-alpha: is \"8\"; it needs --lora");
  EXPECT_EQ(error_of({{"--lora", "8"}}),
            "--lora-targets: is missing: --lora needs patterns of names of matrices, such as "
            "'*.q_proj.weight,*.v_proj.weight'");
  EXPECT_EQ(
      error_of({{"--lora", "8"}, {"--lora-targets", "*.c_attn.*"}, {"--sync", "local"}}),
      "--sync: is \"local\"; it must be step with --lora, whose weights follow the adapters of "
      "each step");
  EXPECT_EQ(
      error_of({{"--lora", "8"}, {"--lora-targets", "*.c_attn.*"}, {"--freeze", "*"}}),
      "--freeze: is \"*\"; it must go with --lora, which trains adapters and what --lora-also "
      "matches");
}

}  // namespace
}  // namespace tj::trainer
