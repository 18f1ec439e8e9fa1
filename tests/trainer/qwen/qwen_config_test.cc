#include "trainer/workloads/qwen_vggt/qwen_config.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "trainer/workloads/qwen_vggt/qwen_json.h"
#include "trainer/workloads/qwen_vggt/qwen_weights.h"
#include "trainer/workloads/qwen_vggt/vggt_config.h"

namespace tj::trainer {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr const char* kNames[] = {"qwen2.5-vl-3b", "qwen2.5-vl-7b", "qwen-nano"};

std::int64_t elements(const std::vector<TensorSpec>& specs, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const auto& spec : specs)
    if (spec.name.starts_with(prefix)) sum += element_count(spec);
  return sum;
}

std::map<std::string, Shape> shapes_of(const std::vector<TensorSpec>& specs) {
  std::map<std::string, Shape> shapes;
  for (const auto& spec : specs) shapes.emplace(spec.name, spec.shape);
  return shapes;
}

TEST(QwenConfig, has_as_many_parameters_as_the_published_models) {
  const auto specs = qwen_tensors(qwen_named("qwen2.5-vl-3b")).specs;
  EXPECT_EQ(elements(specs, "model."), 3'085'938'688);
  EXPECT_EQ(elements(specs, "visual."), 668'684'288);
  EXPECT_EQ(parameter_count(qwen_named("qwen2.5-vl-3b")), 3'754'622'976);
  EXPECT_EQ(parameter_count(qwen_named("qwen2.5-vl-7b")), 8'292'166'656);
}

TEST(QwenConfig, names_and_shapes_are_those_of_the_published_files) {
  const auto of_3b = shapes_of(qwen_tensors(qwen_named("qwen2.5-vl-3b")).specs);
  const std::pair<std::string, Shape> rows[] = {
      {"visual.patch_embed.proj.weight", {1280, 3, 2, 14, 14}},
      {"visual.blocks.0.norm1.weight", {1280}},
      {"visual.blocks.31.attn.qkv.weight", {3840, 1280}},
      {"visual.blocks.31.attn.qkv.bias", {3840}},
      {"visual.blocks.0.attn.proj.bias", {1280}},
      {"visual.blocks.0.mlp.gate_proj.weight", {3420, 1280}},
      {"visual.blocks.0.mlp.up_proj.bias", {3420}},
      {"visual.blocks.0.mlp.down_proj.weight", {1280, 3420}},
      {"visual.merger.ln_q.weight", {1280}},
      {"visual.merger.mlp.0.weight", {5120, 5120}},
      {"visual.merger.mlp.2.weight", {2048, 5120}},
      {"model.embed_tokens.weight", {151'936, 2048}},
      {"model.layers.35.self_attn.q_proj.weight", {2048, 2048}},
      {"model.layers.0.self_attn.k_proj.weight", {256, 2048}},
      {"model.layers.0.self_attn.v_proj.bias", {256}},
      {"model.layers.0.self_attn.o_proj.weight", {2048, 2048}},
      {"model.layers.0.mlp.up_proj.weight", {11'008, 2048}},
      {"model.layers.35.post_attention_layernorm.weight", {2048}},
      {"model.norm.weight", {2048}}};
  for (const auto& [name, shape] : rows) {
    ASSERT_TRUE(of_3b.contains(name)) << name;
    EXPECT_EQ(of_3b.at(name), shape) << name;
  }
  EXPECT_FALSE(of_3b.contains("lm_head.weight"));
  EXPECT_FALSE(of_3b.contains("model.layers.0.self_attn.o_proj.bias"));
  EXPECT_EQ(of_3b.size(), 824);  // as in its index
  const auto of_7b = shapes_of(qwen_tensors(qwen_named("qwen2.5-vl-7b")).specs);
  EXPECT_EQ(of_7b.at("lm_head.weight"), (Shape{152'064, 3584}));
  EXPECT_EQ(of_7b.at("model.layers.27.self_attn.k_proj.weight"), (Shape{512, 3584}));
  EXPECT_EQ(of_7b.size(), 729);
}

TEST(QwenConfig, blocks_hold_each_tensor_in_order_and_a_tied_head_twice) {
  for (const auto* const name : kNames) {
    const auto tensors = qwen_tensors(qwen_named(name));
    std::vector<std::size_t> all;
    for (const auto& block : tensors.blocks)
      all.insert(all.end(), block.tensors.begin(), block.tensors.end());
    if (tensors.head == tensors.words) {
      EXPECT_EQ(all.back(), tensors.words);
      all.pop_back();
    }
    ASSERT_EQ(all.size(), tensors.specs.size()) << name;
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
    EXPECT_EQ(tensors.blocks.size(), tensors.vision_layers.size() + tensors.layers.size() + 4);
  }
}

TEST(QwenConfig, windows_are_four_tokens_wide) {
  for (const auto* const name : kNames)
    EXPECT_EQ(qwen_named(name).vision.windows().window_tokens, 4) << name;
}

TEST(QwenConfig, a_checkpoint_says_of_which_model_it_is) {
  for (const auto* const name : kNames) {
    const auto config = qwen_named(name);
    EXPECT_EQ(qwen_flaw(config), "") << name;
    const auto again = qwen_config_from(qwen_config_json(config), "config.json");
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, config) << qwen_config_json(config);
  }
  EXPECT_NE(qwen_shape(qwen_named(kNames[0])), qwen_shape(qwen_named(kNames[1])));
}

/// Sizes of a published file, with the keys of before and since transformers 5.
constexpr const char* kVisionConfig = R"({"depth": 32, "hidden_act": "silu", "hidden_size": 1280,
    "intermediate_size": 3420, "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584,
    "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
    "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2})";

TEST(QwenConfig, old_and_new_files_are_read) {
  const std::string vision = std::string(R"("vision_config": )") + kVisionConfig;
  const std::string sizes =
      R"("vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
         "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
         "rms_norm_eps": 1e-06, "max_position_embeddings": 128000, "use_sliding_window": false)";
  const std::string texts[] = {
      R"({"model_type": "qwen2_5_vl", "image_token_id": 151655, "rope_theta": 1000000.0,
          "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
          "tie_word_embeddings": false, )" +
          sizes + ", " + vision + "}",
      R"({"model_type": "qwen2_5_vl", "video_token_id": 151656, "tie_word_embeddings": false,
          "text_config": {"model_type": "qwen2_5_vl_text", "sliding_window": null,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0,
                                "mrope_section": [16, 24, 24]}, )" +
          sizes + "}, " + vision + "}"};
  for (const auto& text : texts) {
    const auto config = qwen_config_from(text, "config.json");
    ASSERT_TRUE(config) << describe(config.error());
    EXPECT_EQ(*config, qwen_named("qwen2.5-vl-7b"));
  }
}

/// Of the nano's own file, with one text in place of another.
std::string nano_with(const std::string& text, const std::string& in_place_of) {
  auto json = qwen_config_json(qwen_named("qwen-nano"));
  const auto place = json.find(in_place_of);
  if (place == json.npos) ADD_FAILURE() << in_place_of << " is not in " << json;
  return json.replace(place, in_place_of.size(), text);
}

TEST(QwenConfig, what_can_be_no_qwen_is_refused_with_its_flaw) {
  const std::pair<std::string, const char*> rows[] = {
      {"", "cut short"},
      {"[]", "not a JSON object"},
      {"{}", "lacks a field"},
      {R"({"model_type": "qwen2_vl"})", "must be qwen2_5_vl"},
      {R"({"model_type": 5})", "wrong one"},
      {R"({"model_type": "qwen2_5_vl", "vision_config": []})", "wrong one"},
      {nano_with(R"("hidden_size": 0)", R"("hidden_size": 64)"), "hidden_size is 0"},
      {nano_with(R"("hidden_size": 1e300)", R"("hidden_size": 64)"), "wrong one"},
      {nano_with(R"("num_attention_heads": 5)", R"("num_attention_heads": 4)"), "does not divide"},
      {nano_with(R"("num_key_value_heads": 3)", R"("num_key_value_heads": 2)"), "does not divide"},
      {nano_with(R"("rope_theta": 0.5)", R"("rope_theta": 1000000.0)"), "rope_theta must be"},
      {nano_with(R"("mrope_section": [[)", R"("mrope_section": [)"), "cut short"},
      {nano_with(R"("depth": 1001)", R"("depth": 2)"), "more layers than 1000"},
      {nano_with(R"("window_size": 100)", R"("window_size": 112)"), "a multiple of 28"},
      {nano_with(R"("tie_word_embeddings": 3)", R"("tie_word_embeddings": true)"), "wrong one"},
      {nano_with(R"("use_sliding_window": true)", R"("use_sliding_window": false)"),
       "not computed"},
      {nano_with(R"("hidden_act": "relu")", R"("hidden_act": "silu")"), "only silu"},
      {nano_with(R"("type": "yarn")", R"("type": "mrope")"), "only mrope"},
      {nano_with(R"("out_hidden_size": 63)", R"("out_hidden_size": 64)"), "hidden_size is 64"},
      {nano_with(R"("in_channels": 1)", R"("in_channels": 3)"), "must be 3"},
      {nano_with(R"("image_token_id": 512)", R"("image_token_id": 505)"), "vocab_size is 512"},
      {nano_with(R"("image_token_id": 506)", R"("image_token_id": 505)"), "are the same"},
      {nano_with(R"("fullatt_block_indexes": [2,)", R"("fullatt_block_indexes": [)"),
       "fullatt_block_indexes must be"}};
  for (const auto& [text, flaw] : rows) {
    const auto config = qwen_config_from(text, "config.json");
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::invalid);
    EXPECT_NE(describe(config.error()).find(flaw), std::string::npos)
        << flaw << ": " << describe(config.error());
  }
}

TEST(QwenConfig, sections_must_fill_half_a_head) {
  auto config = qwen_named("qwen-nano");
  config.text.mrope_sections = {2, 3, 2};
  EXPECT_EQ(qwen_flaw(config), "mrope_section adds up to 7; half of a head is 8");
}

TEST(QwenConfig, newer_names_are_known) {
  EXPECT_EQ(published_qwen_name("model.visual.merger.ln_q.weight"), "visual.merger.ln_q.weight");
  EXPECT_EQ(published_qwen_name("model.language_model.norm.weight"), "model.norm.weight");
  for (const char* const name :
       {"visual.merger.ln_q.weight", "model.norm.weight", "lm_head.weight"})
    EXPECT_EQ(published_qwen_name(name), name);
}

TEST(VggtConfig, has_as_many_parameters_as_the_published_aggregator) {
  const auto tensors = vggt_tensors({});
  const auto& specs = tensors.specs;
  EXPECT_EQ(elements(specs, "aggregator.frame_blocks.0."), 12'598'528);
  EXPECT_EQ(elements(specs, "aggregator.patch_embed."), 304'371'712);
  EXPECT_EQ(elements(specs, "aggregator."), 909'111'296);
  std::set<std::string> names;
  for (const auto& spec : specs) {
    names.insert(spec.name);
    EXPECT_EQ(spec.kind, TensorKind::frozen) << spec.name;
  }
  EXPECT_EQ(names.size(), specs.size());
  EXPECT_TRUE(names.contains("aggregator.global_blocks.23.attn.k_norm.bias"));
  EXPECT_TRUE(names.contains("aggregator.patch_embed.blocks.23.ls2.gamma"));
}

TEST(VggtConfig, what_can_be_no_vggt_is_named) {
  EXPECT_EQ(vggt_flaw({}), "");
  VggtConfig config;
  config.layers = 1;
  EXPECT_NE(vggt_flaw(config).find("from 2 to"), std::string::npos);
  config = {};
  config.heads = 3;
  EXPECT_NE(vggt_flaw(config).find("don't divide"), std::string::npos);
  config = {};
  config.registers = 0;
  EXPECT_NE(vggt_flaw(config).find("registers is 0"), std::string::npos);
}

}  // namespace
}  // namespace tj::trainer
