// A configuration of accelerate: each key is told, and what contradicts the job is refused.
#include "trainer/train/accelerate_config.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "yaml/yaml_json.h"

namespace tj::trainer {
namespace {

const ProcessEnv kEnv{.world_size = 8,
                      .rank = 4,
                      .local_world_size = 4,
                      .worker_index = 1,
                      .master_addr = "taehv-0",
                      .origin = "WORLD_SIZE and RANK"};

std::string golden(const std::string& name) {
  std::ifstream file(source_dir() + "/tests/golden/trainer/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<AccelerateConfig> config_of(const std::string& yaml) {
  const auto documents = parse_yaml(yaml, "test");
  EXPECT_TRUE(documents) << describe(documents.error());
  return accelerate_config_from(documents->front(), kEnv);
}

Flags flags_of(const std::string& yaml) {
  const auto config = config_of(yaml);
  EXPECT_TRUE(config) << describe(config.error());
  return config ? config->flags : Flags();
}

std::string error_of(const std::string& yaml) {
  const auto config = config_of(yaml);
  return config ? "" : describe(config.error());
}

std::string last_outcome(const std::string& yaml) {
  const auto config = config_of(yaml);
  EXPECT_TRUE(config) << describe(config.error());
  return config ? config->keys.back().outcome : "";
}

TEST(AccelerateConfig, a_file_with_every_key_is_told_key_by_key) {
  const auto config = config_of(golden("deepspeed_8gpu.yaml"));
  ASSERT_TRUE(config) << describe(config.error());
  std::string text;
  for (const auto& line : accelerate_lines(*config)) text += line + "\n";
  EXPECT_EQ(text, golden("deepspeed_8gpu.txt"));
  EXPECT_EQ(config->flags, (Flags{{"--accumulation", "2"},
                                  {"--grad-clip", "1"},
                                  {"--precision", "bf16"},
                                  {"--zero", "2"}}));
}

TEST(AccelerateConfig, a_job_of_another_size_is_refused_with_both_numbers) {
  EXPECT_EQ(
      error_of("num_processes: 16"),
      "--config: num_processes: is 16, and this job has 8 processes (WORLD_SIZE and RANK); the "
      "two must be the same, or the key must go");
  EXPECT_EQ(error_of("num_machines: 1"),
            "--config: num_machines: is 1, and this job has 2 nodes (WORLD_SIZE and RANK); the two "
            "must be the same, or the key must go");
  EXPECT_TRUE(
      error_of("num_processes: many").starts_with("--config: num_processes: is \"many\", "));
  EXPECT_EQ(
      error_of("distributed_type: 'NO'"),
      "--config: distributed_type: is NO, and this job has 8 processes (WORLD_SIZE and RANK)");
  EXPECT_EQ(error_of("distributed_type: TPU"),
            "--config: distributed_type: is TPU; it must be DEEPSPEED, FSDP, MULTI_GPU, MULTI_CPU "
            "or NO");
}

TEST(AccelerateConfig, fsdp_shares_out_as_much_as_its_strategy) {
  const std::string fsdp = "distributed_type: FSDP\nfsdp_config:\n  ";
  EXPECT_EQ(flags_of("distributed_type: FSDP"), (Flags{{"--zero", "3"}}));
  EXPECT_EQ(flags_of(fsdp + "fsdp_sharding_strategy: SHARD_GRAD_OP"), (Flags{{"--zero", "2"}}));
  EXPECT_EQ(flags_of(fsdp + "fsdp_sharding_strategy: 3"), (Flags{{"--zero", "0"}}));
  EXPECT_EQ(flags_of(fsdp + "fsdp_reshard_after_forward: false"), (Flags{{"--zero", "2"}}));
  EXPECT_EQ(flags_of(fsdp + "fsdp_activation_checkpointing: true"),
            (Flags{{"--recompute", "true"}, {"--zero", "3"}}));
  EXPECT_EQ(last_outcome(fsdp + "fsdp_sharding_strategy: HYBRID_SHARD"),
            "--zero 3 --zero-group 4, the ranks of a node");
  EXPECT_EQ(flags_of(fsdp + "fsdp_sharding_strategy: HYBRID_SHARD_ZERO2"),
            (Flags{{"--zero", "2"}, {"--zero-group", "4"}}));
  EXPECT_EQ(last_outcome(fsdp + "fsdp_state_dict_type: SHARDED_STATE_DICT"),
            "not used: checkpoints hold whole tensors at every stage");
  EXPECT_EQ(error_of(fsdp + "fsdp_sharding_strategy: SOME"),
            "--config: fsdp_config.fsdp_sharding_strategy: is \"SOME\"; it must be FULL_SHARD, "
            "SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2, true or false");
}

TEST(AccelerateConfig, values_are_checked) {
  EXPECT_EQ(flags_of("mixed_precision: no"), (Flags{{"--precision", "fp32"}}));
  EXPECT_EQ(error_of("mixed_precision: fp8"),
            "--config: mixed_precision: is \"fp8\"; it must be \"no\", \"fp16\" or \"bf16\"");
  EXPECT_EQ(flags_of("use_cpu: true"), (Flags{{"--device", "cpu"}}));
  EXPECT_EQ(error_of("use_cpu: 1"), "--config: use_cpu: is 1; it must be true or false");
  EXPECT_EQ(error_of("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: two}"),
            "--config: deepspeed_config.zero_stage: is \"two\"; it must be a number or \"auto\"");
  const auto automatic =
      config_of("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: auto}");
  ASSERT_TRUE(automatic);
  EXPECT_EQ(automatic->keys.front().key, "deepspeed_config.zero_stage");
  EXPECT_EQ(automatic->keys.front().outcome, "left to our flags and defaults");
  EXPECT_EQ(last_outcome("dynamo_config: {dynamo_backend: INDUCTOR}"),
            "not honoured: nothing is compiled by TorchDynamo");
  EXPECT_EQ(last_outcome("colour: blue"), "not used: this trainer has no such setting");
  EXPECT_EQ(error_of("[a, b]"), "--config: holds no keys with values, as accelerate writes them");
}

}  // namespace
}  // namespace tj::trainer
