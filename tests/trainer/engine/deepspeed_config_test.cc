#include "trainer/train/deepspeed_config.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace tj::trainer {
namespace {

const std::string kFolder = source_dir() + "/tests/golden/trainer/";

std::string read(const std::string& name) {
  std::ifstream file(kFolder + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string error_of(const std::string& text, int ranks = 2) {
  const auto config = deepspeed_config_from(text, ranks);
  return config ? "" : describe(config.error());
}

Flags flags_of(const std::string& text, int ranks = 2) {
  const auto config = deepspeed_config_from(text, ranks);
  EXPECT_TRUE(config) << describe(config.error());
  return config ? config->flags : Flags();
}

TEST(DeepSpeedConfig, a_file_of_zero_3_is_read_as_it_is) {
  const auto config = deepspeed_config_from(read("deepspeed_zero3.json"), 16);
  ASSERT_TRUE(config) << describe(config.error());
  std::string text;
  for (const auto& line : deepspeed_lines(*config)) text += line + "\n";
  EXPECT_EQ(text, read("deepspeed_zero3.txt"));
  EXPECT_EQ(config->flags, (Flags{{"--accumulation", "8"},
                                  {"--batch-size", "128"},
                                  {"--grad-clip", "1"},
                                  {"--log-every", "10"},
                                  {"--precision", "bf16"},
                                  {"--zero", "3"},
                                  {"--zero-live-max", "1000000000"},
                                  {"--zero-persist", "1000000"},
                                  {"--zero-prefetch", "500000000"},
                                  {"--zero-reuse", "1000000000"}}));
}

TEST(DeepSpeedConfig, optimizer_and_scheduler_become_flags) {
  EXPECT_EQ(flags_of(R"({"optimizer": {"type": "AdamW", "params": {"lr": 2e-5, "betas": [0.9, 0.95],
                         "eps": 1e-8, "weight_decay": 0.1}},
                         "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_max_lr": 2e-5,
                         "warmup_num_steps": 100, "total_num_steps": 1000}}})"),
            (Flags{{"--beta1", "0.9"},
                   {"--beta2", "0.95"},
                   {"--lr", "2e-05"},
                   {"--schedule", "linear"},
                   {"--steps", "1000"},
                   {"--warmup-steps", "100"},
                   {"--weight-decay", "0.1"}}));
}

TEST(DeepSpeedConfig, the_missing_one_of_three_batch_sizes_is_computed) {
  EXPECT_EQ(flags_of(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4})"),
            (Flags{{"--accumulation", "4"}, {"--batch-size", "32"}}));
  EXPECT_EQ(flags_of(R"({"train_micro_batch_size_per_gpu": 4})"), (Flags{{"--batch-size", "8"}}));
  EXPECT_EQ(flags_of(R"({"train_batch_size": "auto"})"), Flags());
}

TEST(DeepSpeedConfig, a_batch_size_beyond_all_reason_is_refused) {
  EXPECT_EQ(error_of(R"({"train_batch_size": 1e300, "train_micro_batch_size_per_gpu": 4})"),
            "--deepspeed: train_batch_size: is 1e+300; it must be at most 10000000");
  EXPECT_EQ(error_of(R"({"train_micro_batch_size_per_gpu": 9223372036854775807,
                         "gradient_accumulation_steps": 9223372036854775807})"),
            "--deepspeed: train_micro_batch_size_per_gpu: is 9223372036854775807; it must be at "
            "most 10000000");
}

TEST(DeepSpeedConfig, a_file_that_nests_without_end_is_refused) {
  const auto nested = [](const std::string& open, const std::string& close) {
    std::string text = R"({"a": )";
    for (int level = 0; level < 150'000; ++level) text += open;
    text += "1";
    for (int level = 0; level < 150'000; ++level) text += close;
    return text + "}";
  };
  const char* const told = "--deepspeed: the file: is nested more than 32 levels deep";
  EXPECT_EQ(error_of(nested(R"({"a":)", "}")), told);
  EXPECT_EQ(error_of(nested("[", "]")), told);
}

TEST(DeepSpeedConfig, what_is_wrong_is_named) {
  EXPECT_EQ(error_of("{"), "--deepspeed: the file: is not a JSON object (cut short?)");
  EXPECT_EQ(error_of(R"({"gradient_clipping": "much"})"),
            "--deepspeed: gradient_clipping: is \"much\"; it must be a number or \"auto\"");
  EXPECT_EQ(error_of(R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})"),
            "--deepspeed: fp16.enabled: is fp16, and the file has set --precision to bf16");
  EXPECT_EQ(error_of(R"({"train_batch_size": 30, "train_micro_batch_size_per_gpu": 4,
                         "gradient_accumulation_steps": 4})"),
            "--deepspeed: train_batch_size: is 30; train_micro_batch_size_per_gpu x "
            "gradient_accumulation_steps x ranks is 4 x 4 x 2");
  EXPECT_EQ(error_of(R"({"train_micro_batch_size_per_gpu": 0})"),
            "--deepspeed: train_micro_batch_size_per_gpu: and gradient_accumulation_steps must be "
            "from 1");
}

TEST(DeepSpeedConfig, a_flag_that_says_otherwise_is_refused_with_both) {
  const auto config = deepspeed_config_from(R"({"zero_optimization": {"stage": 3}})", 2);
  ASSERT_TRUE(config);
  EXPECT_TRUE(with_deepspeed({{"--zero", "3"}, {"--lr", "1"}}, *config));
  const auto refused = with_deepspeed({{"--zero", "2"}}, *config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(describe(refused.error()),
            "--zero: is \"2\"; the file of --deepspeed says 3, and one of the two must go");
}

TEST(DeepSpeedConfig, groups_of_mics_are_ours_and_those_of_weights_alone_are_not) {
  const auto config = deepspeed_config_from(
      R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8, "mics_shard_size": 4}})",
      8);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->flags, (Flags{{"--zero", "3"}, {"--zero-group", "4"}}));
  EXPECT_EQ(config->keys[1].outcome,
            "not honoured: only weights lie in its groups; --zero-group shares out everything "
            "there");
  const auto off = deepspeed_config_from(
      R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1, "mics_shard_size": -1}})",
      8);
  ASSERT_TRUE(off);
  EXPECT_EQ(off->flags, (Flags{{"--zero", "3"}}));
}

TEST(DeepSpeedConfig, keys_of_stage_3_are_not_used_below_it) {
  const auto config = deepspeed_config_from(
      R"({"zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": 5}})", 2);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->keys.back().outcome, "not used: it is of stage 3");
  EXPECT_EQ(config->flags, (Flags{{"--zero", "2"}}));
}

}  // namespace
}  // namespace tj::trainer
