#include "trainer/workloads/pi0/pi0_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/trainer/pi0/presets.h"
#include "trainer/workloads/pi0/pi0_json.h"

namespace tj::trainer {
namespace {

const std::string kVlm = "paligemma_with_expert.paligemma.model.";
const std::string kExpert = "paligemma_with_expert.gemma_expert.model.";

std::int64_t elements(const std::vector<TensorSpec>& specs, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const auto& spec : specs)
    if (spec.name.starts_with(prefix)) sum += element_count(spec);
  return sum;
}

std::map<std::string, TensorSpec> by_name(const std::string& preset) {
  std::map<std::string, TensorSpec> specs;
  for (auto& spec : pi0_tensors(pi0_named(preset)).specs) specs.emplace(spec.name, spec);
  return specs;
}

TEST(Pi0Config, has_as_many_parameters_as_the_published_models) {
  const auto pi0 = pi0_tensors(pi0_named("pi0")).specs;
  EXPECT_EQ(elements(pi0, kVlm + "language_model."), 2'508'531'712);  // Gemma 2B
  EXPECT_EQ(elements(pi0, kVlm + "vision_tower."), 412'442'352);      // SigLIP So400m/14
  EXPECT_EQ(elements(pi0, kVlm + "multi_modal_projector."), 2'361'344);
  EXPECT_EQ(elements(pi0, kExpert), 311'464'960);
  EXPECT_EQ(elements(pi0, "action_") + elements(pi0, "state_"), 3'248'160);
  EXPECT_EQ(parameter_count(pi0_named("pi0")), 3'238'048'528);
  // Without the state's projection, with half of the first matrix of the time; and of each of the
  // expert's 37 norms a matrix of 1024 x 3072 with a bias in place of 1024 weights.
  EXPECT_EQ(parameter_count(pi0_named("pi05")),
            3'238'048'528 - (32 * 1024 + 1024) - 1024 * 1024 + 37 * (1024 * 3072 + 3072 - 1024));
}

TEST(Pi0Config, names_and_shapes_are_those_of_openpis_files) {
  using Shape = std::vector<std::int64_t>;
  const auto specs = by_name("pi0");
  const std::pair<std::string, Shape> rows[] = {
      {kVlm + "vision_tower.vision_model.embeddings.patch_embedding.weight", {1152, 3, 14, 14}},
      {kVlm + "vision_tower.vision_model.embeddings.patch_embedding.bias", {1152}},
      {kVlm + "vision_tower.vision_model.embeddings.position_embedding.weight", {256, 1152}},
      {kVlm + "vision_tower.vision_model.encoder.layers.0.layer_norm1.weight", {1152}},
      {kVlm + "vision_tower.vision_model.encoder.layers.26.self_attn.out_proj.bias", {1152}},
      {kVlm + "vision_tower.vision_model.encoder.layers.26.mlp.fc1.weight", {4304, 1152}},
      {kVlm + "vision_tower.vision_model.post_layernorm.bias", {1152}},
      {kVlm + "multi_modal_projector.linear.weight", {2048, 1152}},
      {kVlm + "language_model.embed_tokens.weight", {257152, 2048}},
      {kVlm + "language_model.layers.17.self_attn.q_proj.weight", {2048, 2048}},
      {kVlm + "language_model.layers.17.self_attn.k_proj.weight", {256, 2048}},
      {kVlm + "language_model.layers.0.mlp.down_proj.weight", {2048, 16384}},
      {kVlm + "language_model.norm.weight", {2048}},
      {kExpert + "layers.0.self_attn.q_proj.weight", {2048, 1024}},
      {kExpert + "layers.17.self_attn.o_proj.weight", {1024, 2048}},
      {kExpert + "layers.17.post_attention_layernorm.weight", {1024}},
      {kExpert + "norm.weight", {1024}},
      {"state_proj.weight", {1024, 32}},
      {"action_in_proj.weight", {1024, 32}},
      {"action_time_mlp_in.weight", {1024, 2048}},
      {"action_time_mlp_out.bias", {1024}},
      {"action_out_proj.weight", {32, 1024}}};
  for (const auto& [name, shape] : rows) {
    ASSERT_TRUE(specs.contains(name)) << name;
    EXPECT_EQ(specs.at(name).shape, shape) << name;
  }
  // 3 + 27 x 16 + 4 of the images, 1 of the words, 8 + 2 of the ends, 18 x 2 x 9 + 2 of the towers.
  EXPECT_EQ(specs.size(), 776);
}

TEST(Pi0Config, pi05_has_the_time_in_the_norms_of_the_expert_and_no_state) {
  using Shape = std::vector<std::int64_t>;
  const auto specs = by_name("pi05");
  EXPECT_EQ(specs.at(kExpert + "layers.3.input_layernorm.dense.weight").shape, (Shape{3072, 1024}));
  EXPECT_EQ(specs.at(kExpert + "layers.3.post_attention_layernorm.dense.bias").shape,
            (Shape{3072}));
  EXPECT_EQ(specs.at(kExpert + "norm.dense.weight").shape, (Shape{3072, 1024}));
  EXPECT_EQ(specs.at("time_mlp_in.weight").shape, (Shape{1024, 1024}));
  EXPECT_EQ(specs.at(kVlm + "language_model.layers.3.input_layernorm.weight").shape, (Shape{2048}));
  for (const char* const name : {"state_proj.weight", "action_time_mlp_in.weight"})
    EXPECT_FALSE(specs.contains(name)) << name;
  EXPECT_FALSE(specs.contains(kExpert + "layers.3.input_layernorm.weight"));
  EXPECT_EQ(pi0_named("pi05").prompt_tokens, 200);
}

TEST(Pi0Config, what_no_gradient_reaches_is_frozen) {
  std::set<std::string> frozen;
  for (const auto& spec : pi0_tensors(pi0_named("pi0")).specs)
    if (spec.kind != TensorKind::trained) frozen.insert(spec.name);
  const std::string last = kVlm + "language_model.layers.17.";
  EXPECT_EQ(frozen, (std::set<std::string>{
                        last + "self_attn.q_proj.weight", last + "self_attn.o_proj.weight",
                        last + "post_attention_layernorm.weight", last + "mlp.gate_proj.weight",
                        last + "mlp.up_proj.weight", last + "mlp.down_proj.weight",
                        kVlm + "language_model.norm.weight"}));
}

TEST(Pi0Config, blocks_hold_each_tensor_once_and_in_order) {
  for (const auto& preset : pi0_presets()) {
    const auto tensors = pi0_tensors(pi0_model(preset));
    std::vector<std::size_t> all;
    for (const auto& block : tensors.blocks)
      all.insert(all.end(), block.tensors.begin(), block.tensors.end());
    ASSERT_EQ(all.size(), tensors.specs.size()) << preset.name;
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
    std::set<std::string> names;
    for (const auto& spec : tensors.specs) names.insert(spec.name);
    EXPECT_EQ(names.size(), tensors.specs.size());
  }
}

TEST(Pi0Config, a_sequence_is_as_long_as_published) {
  const auto config = pi0_named("pi0");
  EXPECT_EQ(config.prefix_tokens(), 816);
  EXPECT_EQ(config.prefix_tokens() + config.suffix_tokens(), 867);
  EXPECT_EQ(pi0_named("pi05").suffix_tokens(), 50);
}

/// Most of the work is 2 x parameters x tokens; attention is some three hundredths.
TEST(Pi0Config, work_is_that_of_the_matrices_and_of_attention) {
  const double images = 3 * 256 * 2.0 * (412'442'352 + 2'361'344);
  const double prefix = 816 * 2.0 * 1'981'882'368 * 17 / 18;
  const double suffix = 51 * 2.0 * 311'464'960;
  EXPECT_NEAR(pi0_flops_of_sample(pi0_named("pi0")) / (images + prefix + suffix), 1.03, 0.01);
}

TEST(Pi0Config, a_checkpoint_says_of_which_model_it_is) {
  std::vector<Pi0Config> seen;
  for (const auto& preset : pi0_presets()) {
    auto config = pi0_model(preset);
    config.actions_counted = 7;
    config.cameras = {"wrist", "above"};
    const auto text = pi0_config_json(config, Normalisation::mean_std);
    const auto again = pi0_config_from(text, "config.json");
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, config) << text;
    for (const auto& other : seen) EXPECT_NE(pi0_shape(other), pi0_shape(config));
    seen.push_back(config);
    EXPECT_EQ(text.find("sizes") == std::string::npos,
              preset.name == "pi0" || preset.name == "pi05");
  }
}

TEST(Pi0Config, says_by_what_state_and_actions_are_normalised) {
  const std::pair<Normalisation, const char*> rows[] = {{Normalisation::none, "IDENTITY"},
                                                        {Normalisation::mean_std, "MEAN_STD"},
                                                        {Normalisation::quantiles, "QUANTILES"}};
  for (const auto& [normalisation, mode] : rows) {
    const auto text = pi0_config_json(pi0_named("pi0"), normalisation);
    for (const std::string part : {"STATE", "ACTION"})
      EXPECT_NE(text.find('"' + part + "\": \"" + mode + '"'), std::string::npos) << text;
    EXPECT_NE(text.find(R"("VISUAL": "IDENTITY")"), std::string::npos) << text;
  }
}

TEST(Pi0Config, lerobots_own_config_is_read) {
  const auto config = pi0_config_from(
      R"({"type": "pi05", "chunk_size": 10, "n_action_steps": 5, "device": "cuda", "tags": null,
          "input_features": {"observation.images.top": {"type": "VISUAL", "shape": [3, 480, 640]},
                             "observation.state": {"type": "STATE", "shape": [14]}},
          "output_features": {"action": {"type": "ACTION", "shape": [14]}}})",
      "config.json");
  ASSERT_TRUE(config) << describe(config.error());
  EXPECT_TRUE(config->is_pi05());
  EXPECT_EQ(config->horizon, 10);
  EXPECT_EQ(config->prompt_tokens, 200);
  EXPECT_EQ(config->action_width, 32);
  EXPECT_EQ(config->actions_counted, 14);
  EXPECT_EQ(config->cameras, std::vector<std::string>{"top"});
  EXPECT_EQ(config->prefix, pi0_named("pi05").prefix);
}

TEST(Pi0Config, what_can_be_no_pi0_is_refused_with_its_flaw) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "cut short"},
      {"[1]", "not a JSON object"},
      {"{}", "lacks a field"},
      {R"({"type": "act"})", "must be pi0 or pi05"},
      {R"({"type": 3})", "wrong one"},
      {R"({"type": "pi0", "chunk_size": 0})", "chunk_size is 0"},
      {R"({"type": "pi0", "chunk_size": 1e40})", "wrong one"},
      {R"({"type": "pi0", "max_action_dim": 1000001})", "from 1 to 1000000"},
      {R"({"type": "pi0", "image_resolution": [224, 448]})", "not square"},
      {R"({"type": "pi0", "image_resolution": [225, 225]})", "multiple of 14"},
      {R"({"type": "pi0", "image_resolution": []})", "wrong one"},
      {R"({"type": "pi0", "paligemma_variant": "gemma_300m"})", "another variant"},
      {R"({"type": "pi0", "input_features": {"observation.state": {}}})", "0 images"},
      {R"({"type": "pi0", "output_features": {"action": {"shape": [33]}}})", "33 values"},
      {R"({"type": "pi0", "output_features": {"action": 3}})", "wrong one"},
      {R"({"type": "pi0", "sizes": {"layers": 2}})", "lacks a field"},
  };
  for (const auto& [text, flaw] : rows) {
    const auto config = pi0_config_from(text, "config.json");
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, Code::invalid);
    EXPECT_NE(describe(config.error()).find(flaw), std::string::npos)
        << text << ": " << describe(config.error());
  }
}

}  // namespace
}  // namespace tj::trainer
