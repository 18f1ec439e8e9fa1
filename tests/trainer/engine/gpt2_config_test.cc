#include "trainer/workloads/gpt2/gpt2_config.h"

#include <gtest/gtest.h>

#include <set>

namespace tj::trainer {
namespace {

Gpt2Config model_named(const std::string& name, std::int64_t vocabulary) {
  for (const auto& preset : gpt2_presets()) {
    if (preset.name != name) continue;
    auto model = gpt2_model(preset);
    model.vocabulary = vocabulary;
    return model;
  }
  ADD_FAILURE() << "no preset " << name;
  return {};
}

TEST(Gpt2Config, parameter_counts_are_those_of_the_published_models) {
  struct Row {
    const char* preset;
    std::int64_t vocabulary;
    std::int64_t parameters;
  };
  const Row rows[] = {
      {"gpt2-tiny", 50257, 51'213'824},     // both are called "50 M"
      {"gpt2-tiny-zh", 21128, 48'909'312},  // with the vocabulary of Chinese BERT
      {"gpt2-small", 50257, 124'439'808},   // gpt2
      {"gpt2-medium", 50257, 354'823'168}, {"gpt2-large", 50257, 774'030'080},
      {"gpt2-xl", 50257, 1'557'611'200},
  };
  for (const auto& row : rows)
    EXPECT_EQ(parameter_count(model_named(row.preset, row.vocabulary)), row.parameters)
        << row.preset;
}

TEST(Gpt2Config, heads_are_64_wide_as_published_and_divide_the_width) {
  for (const auto& preset : gpt2_presets()) {
    const auto model = gpt2_model(preset);
    EXPECT_EQ(model.width % model.heads, 0) << preset.name;
    EXPECT_EQ(model.width / model.heads, preset.name == "gpt2-nano" ? 32 : 64) << preset.name;
  }
}

TEST(Gpt2Config, presets_have_bytes_for_tokens) {
  const auto model = gpt2_model(gpt2_presets().front());
  EXPECT_EQ(parameter_count(model),
            256 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128);
  for (const auto& preset : gpt2_presets()) EXPECT_EQ(gpt2_model(preset).vocabulary, 256);
}

TEST(Gpt2Config, tensors_are_named_as_in_hugging_face_files_and_the_head_is_tied) {
  const auto tensors = gpt2_tensors({.layers = 2});
  std::set<std::string> names;
  for (const auto& tensor : tensors) names.insert(tensor.name);
  EXPECT_EQ(names.size(), tensors.size());
  EXPECT_EQ(tensors.size(), 2 + 2 * 12 + 2);
  for (const char* name :
       {"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.1.attn.c_attn.weight",
        "transformer.h.0.mlp.c_proj.bias", "transformer.ln_f.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("lm_head.weight"));
}

}  // namespace
}  // namespace tj::trainer
