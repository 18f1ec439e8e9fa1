// The model that is trained: what of a batch it looks at, what it counts as right, where VGGT comes
// in, and that an answer token by token is what a whole pass says.
#include "trainer/workloads/qwen_vggt/qwen_vggt.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <set>

#include "tests/trainer/qwen/conversations.h"
#include "tests/trainer/qwen/scenes.h"
#include "trainer/workloads/qwen_vggt/answer.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"
#include "trainer/workloads/qwen_vggt/trained_qwen.h"

namespace tj::trainer {
namespace {

QwenVggtConfig nano(bool is_coupled = true) {
  auto config = qwen_vggt_model(qwen_vggt_presets().front());
  if (!is_coupled) config.coupling.reset();
  return config;
}

std::unique_ptr<SceneFeatures> features_of(const QwenVggtConfig& config,
                                           std::int64_t cache_bytes = 1 << 20) {
  if (!config.coupling) return nullptr;
  auto features = open_scene_features(*config.coupling, {}, {.cache_bytes_max = cache_bytes});
  EXPECT_TRUE(features.ok());
  return std::move(*features);
}

QwenVggt model_of(const QwenVggtConfig& config, const ModelOptions& options = {.seed = 3}) {
  return {random_weights(qwen_vggt_tensors(config).specs), config, options, features_of(config)};
}

Batch batch_of(const QwenVggtConfig& config, const std::vector<std::int64_t>& numbers,
               SceneSet set = {.count = 1 << 20}) {
  const SceneSamples source(set, conversation_shape_of(config));
  std::vector<Sample> samples;
  for (const auto number : numbers) samples.push_back({.index = number});
  auto read = source.read(samples);
  Batch batch;
  for (auto& tensor : read->tensors) {
    const auto type = tensor.type == HostTensor::Type::uint8 ? at::kByte : at::kInt;
    batch.push_back(at::from_blob(tensor.bytes.data(), tensor.shape, type).clone());
  }
  return batch;
}

Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part;
  for (const auto& tensor : batch) part.push_back(tensor.narrow(0, first, count));
  return part;
}

double loss_of(const QwenVggt& model, const Batch& batch) {
  return model.pass(batch, 0).loss.item<double>();
}

TEST(QwenVggt, a_part_of_a_batch_is_what_it_would_be_alone) {
  const auto config = nano();
  const auto model = model_of(config);
  const at::NoGradGuard no_gradients;
  // The second has no pictures, and is shorter.
  const SceneSet mixed{.count = 1 << 20, .text_percent = 50};
  std::int64_t with = 0, without = 0;
  while (scene_of(mixed, with).frames.empty()) ++with;
  while (!scene_of(mixed, without).frames.empty()) ++without;
  const auto both = batch_of(config, {with, without}, mixed);
  for (const auto row : {0, 1}) {
    const auto alone = batch_of(config, {row == 0 ? with : without}, mixed);
    EXPECT_EQ(loss_of(model, part_of(both, row, 1)), loss_of(model, alone)) << row;
  }
  const auto sum = loss_of(model, part_of(both, 0, 1)) + loss_of(model, part_of(both, 1, 1));
  EXPECT_NEAR(loss_of(model, both), sum, 1e-4 * sum);
}

TEST(QwenVggt, its_batch_is_that_of_the_conversations_it_is_made_of) {
  const auto config = nano(false);
  const SceneSet set{.count = 1 << 20};
  const auto made = conversation_batch(batch_of(config, {5}, set), config.qwen);
  const auto scene = scene_of(set, 5);
  const auto shape = conversation_shape_of(config);
  const auto grid = image_grid({Scene::kSide, Scene::kSide}, shape.patches);
  std::vector<float> values(
      static_cast<std::size_t>(grid.patches() * shape.patches.values_of_patch()));
  write_patches(scene.frames[0], {Scene::kSide, Scene::kSide}, shape.patches, {}, values);
  const auto wanted = torch::tensor(values).view({grid.patches(), -1});
  EXPECT_TRUE(at::allclose(made.qwen.patches.narrow(0, 0, grid.patches()), wanted, 0, 1e-6));
  EXPECT_EQ(made.qwen.grids, (std::vector<VisionGrid>{grid, grid}));
  EXPECT_EQ(made.qwen.pads.size(0), 2 * token_count(grid, shape.patches));
  EXPECT_EQ(made.answer_count, 1);
  // The answer, the end of its turn and line, and what of "assistant\n" is more than two tokens.
  EXPECT_EQ(made.qwen.target_ids.size(0), static_cast<std::int64_t>(scene.answer.size()) + 2 + 8);
  EXPECT_FALSE(made.samples[0].scene);
}

TEST(QwenVggt, right_tokens_and_answers_are_counted_in_evaluations_of_both) {
  const auto config = nano(false);
  const auto model = model_of(config);
  const at::NoGradGuard no_gradients;
  const auto batch = batch_of(config, {1, 2, 3});
  const auto training = model.pass(batch, 0), evaluation = model.pass(batch, {});
  EXPECT_EQ(training.metrics[kRightTokens].item<double>(),
            evaluation.metrics[kRightTokens].item<double>());
  EXPECT_EQ(training.metrics[kAnswers].item<double>(), 0);
  EXPECT_EQ(evaluation.metrics[kAnswers].item<double>(), 3);
  EXPECT_LE(evaluation.metrics[kRightAnswers].item<double>(), 3);
}

TEST(QwenVggt, vggt_changes_what_pictures_say_and_nothing_else) {
  auto config = nano();
  const auto seeing = model_of(config);
  config.coupling->weight = 0;
  const auto blind = model_of(config);
  const auto plain_config = nano(false);
  const auto specs = qwen_vggt_tensors(config);
  auto weights = random_weights(specs.specs);
  const auto first = weights.begin() + static_cast<std::ptrdiff_t>(specs.geometry);
  weights.erase(first, first + static_cast<std::ptrdiff_t>(specs.geometry_count));
  const QwenVggt plain(std::move(weights), plain_config, {.seed = 3}, nullptr);
  const at::NoGradGuard no_gradients;
  const auto batch = batch_of(config, {7, 8});
  EXPECT_NEAR(loss_of(blind, batch), loss_of(plain, batch_of(plain_config, {7, 8})), 1e-4);
  EXPECT_GT(std::abs(loss_of(seeing, batch) - loss_of(blind, batch)), 1e-3);
  const SceneSet text{.count = 1 << 20, .text_percent = 100};
  EXPECT_EQ(loss_of(seeing, batch_of(config, {7}, text)),
            loss_of(plain, batch_of(plain_config, {7}, text)));
}

TEST(QwenVggt, frames_that_come_again_are_looked_at_once) {
  const auto config = nano();
  const auto made = conversation_batch(batch_of(config, {1, 2}), config.qwen);
  const SceneFrames* const scenes[] = {&*made.samples[0].scene, &*made.samples[1].scene};
  const auto keeping = features_of(config), forgetful = features_of(config, 0);
  const auto first = keeping->newest(scenes);
  EXPECT_EQ(keeping->seen(), 4);
  const auto again = keeping->newest(scenes), anew = forgetful->newest(scenes);
  EXPECT_EQ(keeping->seen(), 4);
  EXPECT_EQ(keeping->known(), 4);
  for (const auto scene : {0, 1}) {
    EXPECT_TRUE(at::equal(again[scene], first[scene]));
    EXPECT_TRUE(at::equal(anew[scene], first[scene]));
  }
}

/// The engine says which batch comes next before it computes the one before.
TEST(QwenVggt, a_pass_that_was_begun_has_the_same_bits) {
  const auto config = nano();
  const auto model = model_of(config), plain = model_of(config);
  const at::NoGradGuard no_gradients;
  const SceneSet mixed{.count = 1 << 20, .text_percent = 50};
  std::vector<Batch> batches;
  for (std::int64_t number = 0; number < 6; ++number)
    batches.push_back(batch_of(config, {number, number + 100}, mixed));
  const auto expect_same = [&](const Batch& batch) {
    EXPECT_EQ(loss_of(model, batch), loss_of(plain, batch));
  };
  for (std::size_t i = 0; i + 1 < batches.size(); ++i) {
    model.ahead(batches[i + 1]);
    expect_same(batches[i]);
  }
  expect_same(batches.back());
  // Nobody comes for these, or only for the last.
  for (const auto& batch : batches) model.ahead(batch);
  expect_same(batches[0]);
  expect_same(batches.back());
  model.ahead(batches[1]);
  model.ahead(batches[1]);
  expect_same(batches[1]);
  expect_same(batches[1]);
  expect_same(batches[2]);
}

TEST(QwenVggt, each_tensor_has_a_gradient_where_there_are_pictures) {
  const auto config = nano();
  const auto model = model_of(config);
  model.pass(batch_of(config, {1, 2}), 0).loss.backward();
  const auto specs = qwen_vggt_tensors(config).specs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    ASSERT_TRUE(model.tensors()[i].grad().defined()) << specs[i].name;
    EXPECT_GT(model.tensors()[i].grad().abs().max().item<double>(), 0) << specs[i].name;
  }
}

TEST(QwenVggt, blocks_have_all_tensors_and_are_told_in_their_order) {
  class Listening final : public BlockHooks {
   public:
    void before(std::size_t index) override { blocks.push_back(index); }
    void after(std::size_t, const at::Tensor&) override {}
    std::vector<std::size_t> blocks;
  };
  Listening hooks;
  const auto config = nano();
  const QwenVggt model(config, {.seed = 1}, {.hooks = &hooks}, features_of(config));
  const at::NoGradGuard no_gradients;
  loss_of(model, batch_of(config, {1}));
  const auto tensors = qwen_vggt_tensors(config);
  std::vector<std::size_t> all(tensors.blocks.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(hooks.blocks, all);
  std::set<std::size_t> used;
  for (const auto& block : tensors.blocks) used.insert(block.tensors.begin(), block.tensors.end());
  EXPECT_EQ(used.size(), tensors.specs.size());
  EXPECT_EQ(tensors.specs[tensors.blocks[tensors.geometry_block].tensors.front()].name,
            "merger.ln_q.weight");
}

TEST(QwenVggt, an_answer_token_by_token_is_what_a_whole_pass_says) {
  const auto config = nano();
  const auto model = model_of(config);
  const at::NoGradGuard no_gradients;
  const auto batch = batch_of(config, {4});
  const auto made = conversation_batch(batch, config.qwen);
  const auto logits = model.qwen().judged(made.qwen, model.pictures(made));
  // The conversation up to where the answer begins.
  const auto begin = made.qwen.judged[0].item<std::int64_t>() + 1;
  auto open = batch;
  for (const auto which : {kConversationTokens, kConversationLabels})
    open[which] = batch[which].narrow(1, 0, begin);
  open[kConversationPositions] = batch[kConversationPositions].narrow(2, 0, begin);
  Answer answer(model, config, open);
  EXPECT_EQ(answer.tokens(), begin);
  for (std::int64_t token = 0; token < logits.size(0); ++token) {
    EXPECT_TRUE(at::allclose(answer.logits(), logits[token], 1e-3, 1e-4)) << token;
    answer.go_on(made.qwen.target_ids[token].item<std::int64_t>());
  }
}

TEST(QwenVggt, config_json_comes_back_whole) {
  auto config = nano();
  config.coupling->sight = FrameSight::all;
  config.coupling->weight = 0.5;
  config.coupling->file = "/models/vggt.safetensors";
  const auto read = qwen_vggt_config_from(qwen_vggt_config_json(config), "config.json");
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, config);
  const auto plain = qwen_vggt_config_from(qwen_vggt_config_json(nano(false)), "config.json");
  EXPECT_EQ(*plain, nano(false));
  auto broken = qwen_vggt_config_json(config);
  broken.replace(broken.find("\"registers\""), 11, "\"registrars\"");
  EXPECT_NE(describe(qwen_vggt_config_from(broken, "config.json").error()).find("registers"),
            std::string::npos);
}

TEST(QwenVggt, what_a_training_saw_of_videos_is_read_back) {
  const SeenFrames seen{
      .of_second = 1.5, .min = 6, .max = 12, .pixels_min = 3136, .pixels_max = 6272};
  EXPECT_EQ(seen_frames_from(video_preprocessor_json({}, seen)), seen);
  EXPECT_EQ(seen_frames_from("{}"), SeenFrames{});
  const auto published = seen_frames_from(
      R"({"size": {"shortest_edge": 100352, "longest_edge": 602112}, "fps": null,
          "max_frames": 768, "min_frames": 4})");
  EXPECT_EQ(published, (SeenFrames{.max = 768}));
  for (const char* const wrong : {"[", "[]", R"({"fps": 0})", R"({"max_frames": -1})",
                                  R"({"size": {"longest_edge": 7}})", R"({"min_frames": 1e9})"})
    EXPECT_TRUE(!seen_frames_from(wrong) || *seen_frames_from(wrong) == SeenFrames{}) << wrong;
}

TEST(QwenVggt, the_bounds_of_pictures_are_read_in_both_ways_of_transformers) {
  for (const char* const text :
       {R"({"min_pixels": 3136, "max_pixels": 12845056})",
        R"({"min_pixels": null, "size": {"shortest_edge": 3136, "longest_edge": 12845056}})"}) {
    const auto bounds = pixel_bounds_from(text);
    ASSERT_TRUE(bounds) << text;
    EXPECT_EQ(bounds->min, 3136);
    EXPECT_EQ(bounds->max, 12'845'056);
  }
  for (const char* const wrong : {"[", "[]", "{}", R"({"size": 7})", R"({"min_pixels": 9})"})
    EXPECT_FALSE(pixel_bounds_from(wrong)) << wrong;
}

TEST(QwenVggt, patches_and_colours_of_another_kind_are_refused_by_field_and_value) {
  const PatchRule rule;
  const auto why = [&](const std::string& text) {
    const auto checked = check_patches(text, "preprocessor_config.json", rule);
    return checked ? "" : describe(checked.error());
  };
  for (const auto& right :
       {preprocessor_json(rule), video_preprocessor_json(rule, {}), std::string("{}"),
        std::string(R"({"patch_size": null, "do_rescale": true, "rescale_factor": 0.00392156862})"),
        std::string(R"({"image_std": [0.268629541, 0.261302580, 0.275777110]})")})
    EXPECT_EQ(why(right), "");
  const std::pair<std::string, std::string> wrong[] = {
      {"[]", "is not a JSON object"},
      {R"({"patch_size": 16})", "patch_size is 16; it must be 14 for this model and trainer"},
      {R"({"merge_size": "2"})", "merge_size is \"2\"; it must be 2 for this model and trainer"},
      {R"({"do_normalize": false})",
       "do_normalize is false; it must be true for this model and trainer"},
      {R"({"image_mean": [0.5, 0.5, 0.5]})",
       "image_mean is [0.5,0.5,0.5]; it must be [0.48145466,0.4578275,0.40821073] for this model "
       "and trainer"},
      {R"({"image_mean": [0.48145466, 0.4578275]})",
       "image_mean is [0.48145466,0.4578275]; it must be [0.48145466,0.4578275,0.40821073] for "
       "this model and trainer"},
      {"{\"image_std\": \"" + std::string(1000, 'x') + "\"}",
       "image_std is \"" + std::string(59, 'x') +
           "...; it must be [0.26862954,0.26130258,0.27577711] for this model and trainer"}};
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(why(text), "preprocessor_config.json: " + message) << text;
}

TEST(QwenVggt, the_published_sizes_cost_what_is_known_of_them) {
  const auto preset = qwen_vggt_presets()[1];
  const auto config = qwen_vggt_model(preset);
  // 3.09e9 parameters of text without the embedding's 0.31e9: 2 FLOP each for a token.
  const auto text = qwen_vggt_flops(config, {.tokens = 1, .pictures = 0, .patches = 0});
  EXPECT_NEAR(text / 5.55e9, 1, 0.01);
  EXPECT_EQ(preprocessor_json({}).find("0.48145466") == std::string::npos, false);
}

}  // namespace
}  // namespace tj::trainer
