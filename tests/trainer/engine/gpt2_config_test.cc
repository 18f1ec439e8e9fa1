#include "trainer/workloads/gpt2/gpt2_config.h"

#include <gtest/gtest.h>

#include <set>

namespace tj::trainer {
namespace {

TEST(Gpt2Config, parameter_counts_are_those_of_the_published_models) {
  const auto count = [](std::int64_t layers, std::int64_t heads, std::int64_t width,
                        std::int64_t context) {
    return parameter_count({.layers = layers,
                            .heads = heads,
                            .width = width,
                            .context = context,
                            .vocabulary = 50257});
  };
  EXPECT_EQ(count(12, 12, 768, 1024), 124'439'808);     // gpt2
  EXPECT_EQ(count(48, 25, 1600, 1024), 1'557'611'200);  // gpt2-xl
  EXPECT_EQ(count(8, 8, 512, 512), 51'213'824);         // the 50 M model of two nodes on 1 Gbit/s
}

TEST(Gpt2Config, presets_have_bytes_for_tokens) {
  const auto model = [](std::size_t preset) { return gpt2_model(gpt2_presets()[preset]); };
  EXPECT_EQ(parameter_count(model(0)),
            256 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128);
  EXPECT_EQ(model(1),
            (Gpt2Config{.layers = 8, .heads = 8, .width = 512, .context = 512, .vocabulary = 256}));
  EXPECT_EQ(
      model(2),
      (Gpt2Config{.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 256}));
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
