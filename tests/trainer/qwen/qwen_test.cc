#include "trainer/workloads/qwen_vggt/qwen.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/trainer/qwen/conversations.h"
#include "trainer/workloads/qwen_vggt/qwen_vision.h"

namespace tj::trainer {
namespace {

const QwenConfig kNano = qwen_named("qwen-nano");

QwenConfig untied() {
  auto config = kNano;
  config.text.is_tied = false;
  return config;
}

const VisionInput kSquarePicture{.grid = kSquare};
const VisionInput kWidePicture{.grid = kWide};
const VisionInput kVideo{
    .grid = {.frames = 3, .rows = 4, .columns = 4}, .is_video = true, .seconds_of_frame = 0.5F};

/// What masked attention makes of all patches at once.
at::Tensor by_mask(const at::Tensor& x, const std::vector<std::int64_t>& bounds) {
  auto sees = torch::zeros({x.size(0), x.size(0)}, at::kBool);
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    const auto count = bounds[i + 1] - bounds[i];
    sees.narrow(0, bounds[i], count).narrow(1, bounds[i], count) = true;
  }
  const auto by_head = x.transpose(0, 1).unsqueeze(0);
  const auto mixed = at::scaled_dot_product_attention(by_head, by_head, by_head, sees);
  return mixed.squeeze(0).transpose(0, 1);
}

/// Each computed alone is what it is among the others.
TEST(Qwen, patches_attend_inside_their_stretches_alone) {
  torch::manual_seed(1);
  const std::vector<VisionGrid> grids{kWide, kSquare, {.frames = 2, .rows = 2, .columns = 10}};
  const auto windows = vision_windows(grids, kNano.vision.windows());
  const auto model = random_qwen(kNano);
  const at::NoGradGuard no_gradients;
  const auto layout = qwen_tensors(kNano);
  const at::TensorList layer(
      at::TensorList(model.tensors()).slice(layout.vision_layers[0], kTensorsOfQwenVisionLayer));
  const auto x = torch::randn({windows.frame_bounds.back(), kNano.vision.width});
  const auto none = torch::zeros({x.size(0), 1, kNano.vision.head_width() / 2});
  const Turns still{.cosine = none + 1, .sine = none};
  for (const auto& bounds : {windows.window_bounds, windows.frame_bounds}) {
    const auto whole =
        vision_layer(x, layer, kNano.vision, attention_plan(bounds, at::kCPU), still);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      const auto count = bounds[i + 1] - bounds[i];
      const std::vector<std::int64_t> one{0, count};
      const auto cut = still.cosine.narrow(0, 0, count);
      const auto alone =
          vision_layer(x.narrow(0, bounds[i], count), layer, kNano.vision,
                       attention_plan(one, at::kCPU), {.cosine = cut, .sine = cut - 1});
      EXPECT_TRUE(whole.narrow(0, bounds[i], count).allclose(alone, 1e-5, 1e-5)) << i;
    }
  }
}

TEST(Qwen, one_plan_of_attention_is_one_mask) {
  torch::manual_seed(1);
  const std::vector<VisionGrid> grids{kWide, kSquare};
  const auto bounds = vision_windows(grids, kNano.vision.windows()).window_bounds;
  const auto plan = attention_plan(bounds, at::kCPU);
  std::int64_t rows = 0;
  for (const auto& part : plan.stretches) {
    EXPECT_EQ(part.rows.size(0) % part.length, 0);
    rows += part.rows.size(0);
  }
  EXPECT_EQ(rows, bounds.back());
  const auto x = torch::randn({rows, 2, 16});
  std::vector<at::Tensor> parts;
  for (const auto& part : plan.stretches) {
    const auto own = x.index_select(0, part.rows).unflatten(0, {-1, part.length}).transpose(1, 2);
    const auto mixed = at::scaled_dot_product_attention(own, own, own);
    parts.push_back(mixed.transpose(1, 2).flatten(0, 1));
  }
  EXPECT_TRUE(at::cat(parts).index_select(0, plan.back).allclose(by_mask(x, bounds), 1e-5, 1e-6));
}

TEST(Qwen, pictures_do_not_see_each_other) {
  torch::manual_seed(5);
  const auto model = random_qwen(kNano);
  const at::NoGradGuard no_gradients;
  const auto first = made_up(kNano, {kSquarePicture}, 4);
  const auto second = made_up(kNano, {kWidePicture, kVideo}, 4);
  const auto both = model.pictures(batch_of(kNano, {first, second}));
  EXPECT_EQ(both.sizes(), at::IntArrayRef({4 + 18 + 12, kNano.text.width}));
  const auto apart = at::cat(
      {model.pictures(batch_of(kNano, {first})), model.pictures(batch_of(kNano, {second}))});
  EXPECT_TRUE(both.allclose(apart, 1e-4, 1e-5));
}

TEST(Qwen, the_loss_of_a_batch_is_that_of_its_samples) {
  for (const auto& config : {kNano, untied()}) {
    torch::manual_seed(6);
    const auto model = random_qwen(config);
    const at::NoGradGuard no_gradients;
    const std::vector<QwenSample> samples{made_up(config, {kSquarePicture, kWidePicture}, 9),
                                          made_up(config, {}, 12), made_up(config, {kVideo}, 5)};
    const auto batch = batch_of(config, samples);
    EXPECT_EQ(batch.tokens.sizes(), at::IntArrayRef({3, 4 + 4 + 18 + 9}));
    EXPECT_EQ(batch.target_ids.size(0), 4 + 6 + 2);
    double parts = 0;
    for (const auto& sample : samples)
      parts += model.loss(batch_of(config, {sample})).item<double>();
    EXPECT_NEAR(model.loss(batch).item<double>() / parts, 1, 1e-5);
  }
}

TEST(Qwen, the_loss_is_that_of_the_logits) {
  torch::manual_seed(7);
  const auto model = random_qwen(untied());
  const at::NoGradGuard no_gradients;
  const auto batch = batch_of(untied(), {made_up(kNano, {kSquarePicture}, 6)});
  const auto said = model.logits(batch).log_softmax(-1).flatten(0, 1);
  double loss = 0;
  for (std::int64_t i = 0; i < batch.judged.size(0); ++i)
    loss -= said[batch.judged[i].item<std::int64_t>()][batch.target_ids[i].item<std::int64_t>()]
                .item<double>();
  EXPECT_NEAR(model.loss(batch).item<double>() / loss, 1, 1e-5);
}

TEST(Qwen, no_token_sees_what_comes_after_it) {
  torch::manual_seed(8);
  const auto model = random_qwen(kNano);
  const at::NoGradGuard no_gradients;
  auto sample = made_up(kNano, {kSquarePicture}, 8);
  const auto before = model.logits(batch_of(kNano, {sample}));
  sample.tokens.ids.back() = (sample.tokens.ids.back() + 1) % 400;
  const auto after = model.logits(batch_of(kNano, {sample}));
  const auto same = before.size(1) - 1;
  EXPECT_TRUE(before.narrow(1, 0, same).equal(after.narrow(1, 0, same)));
  EXPECT_FALSE(before.allclose(after));
}

TEST(Qwen, gradients_reach_every_tensor_and_without_pictures_the_text_alone) {
  torch::manual_seed(9);
  const auto specs = qwen_tensors(kNano).specs;
  const auto seeing = random_qwen(kNano), reading = random_qwen(kNano);
  seeing.loss(batch_of(kNano, {made_up(kNano, {kWidePicture}, 8)})).backward();
  reading.loss(batch_of(kNano, {made_up(kNano, {}, 8)})).backward();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& name = specs[i].name;
    ASSERT_TRUE(seeing.tensors()[i].grad().defined()) << name;
    EXPECT_GT(seeing.tensors()[i].grad().abs().max().item<double>(), 0) << name;
    EXPECT_EQ(reading.tensors()[i].grad().defined(), !name.starts_with("visual.")) << name;
  }
}

TEST(Qwen, bfloat16_is_near) {
  torch::manual_seed(10);
  const auto exact = random_qwen(kNano);
  const auto rough = random_qwen(kNano, {.seed = 3, .precision = Precision::bf16});
  const at::NoGradGuard no_gradients;
  const auto batch = batch_of(kNano, {made_up(kNano, {kWidePicture, kVideo}, 20)});
  EXPECT_NEAR(rough.loss(batch).item<double>() / exact.loss(batch).item<double>(), 1, 0.02);
}

/// Counts on the blocks being told one after another.
class CountingHooks final : public BlockHooks {
 public:
  void before(std::size_t index) override { blocks.push_back(index); }
  void after(std::size_t, const at::Tensor&) override {}
  std::vector<std::size_t> blocks;
};

TEST(Qwen, blocks_are_told_in_their_order_and_those_of_pictures_left_out) {
  CountingHooks hooks;
  const Qwen model(kNano, {.seed = 1}, {.hooks = &hooks});
  const at::NoGradGuard no_gradients;
  model.loss(batch_of(kNano, {made_up(kNano, {kSquarePicture}, 4)}));
  EXPECT_EQ(hooks.blocks, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  hooks.blocks.clear();
  model.loss(batch_of(kNano, {made_up(kNano, {}, 4)}));
  EXPECT_EQ(hooks.blocks, (std::vector<std::size_t>{4, 5, 6, 7}));
  EXPECT_EQ(qwen_tensors(kNano).blocks.size(), 8);
}

TEST(Qwen, a_sample_that_does_not_fit_is_named) {
  std::vector<QwenSample> samples{made_up(kNano, {}, 4), made_up(kNano, {kSquarePicture}, 4)};
  samples[1].tokens.ids.erase(samples[1].tokens.ids.begin() + 2);
  const auto batch = qwen_batch(samples, kNano.mrope(), at::kCPU);
  ASSERT_FALSE(batch);
  EXPECT_NE(describe(batch.error()).find("sample 1 of the batch: token 1: 3 pads for 4"),
            std::string::npos)
      << describe(batch.error());
}

}  // namespace
}  // namespace tj::trainer
