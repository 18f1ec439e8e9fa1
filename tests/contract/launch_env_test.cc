#include "contract/launch_env.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace tj {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

EnvLookup lookup_in(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Variables variables_of(const LaunchEnv& env) {
  Variables variables;
  for (const EnvVar& variable : to_env(env)) variables[variable.name] = variable.value;
  return variables;
}

const LaunchEnv kWorkerOne{.world_size = 2,
                           .rank = 1,
                           .master_addr = "mnist-worker-0.mnist",
                           .master_port = 29500,
                           .nproc_per_node = 8,
                           .job_name = "mnist",
                           .job_namespace = "team-a",
                           .job_uid = "5f0c",
                           .attempt = 3};

TEST(LaunchEnv, what_the_operator_writes_the_trainer_reads) {
  for (int world_size = 1; world_size <= 4; ++world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      for (const auto nproc : {std::optional<int>{}, std::optional<int>{8}}) {
        LaunchEnv env = kWorkerOne;
        env.world_size = world_size;
        env.rank = rank;
        env.nproc_per_node = nproc;
        const auto read = from_env(lookup_in(variables_of(env)));
        ASSERT_TRUE(read.ok()) << describe(read.error());
        EXPECT_EQ(*read, env);
      }
    }
  }
}

TEST(LaunchEnv, is_injected_in_this_order) {
  std::string text;
  for (const EnvVar& variable : to_env(kWorkerOne))
    text += variable.name + "=" + variable.value + "\n";
  EXPECT_EQ(text,
            "WORLD_SIZE=2\nRANK=1\nMASTER_ADDR=mnist-worker-0.mnist\nMASTER_PORT=29500\n"
            "NNODES=2\nNODE_RANK=1\nNPROC_PER_NODE=8\n"
            "PET_NNODES=2\nPET_NODE_RANK=1\nPET_NPROC_PER_NODE=8\n"
            "PET_MASTER_ADDR=mnist-worker-0.mnist\nPET_MASTER_PORT=29500\n"
            "TRAININGJOB_NAME=mnist\nTRAININGJOB_NAMESPACE=team-a\nTRAININGJOB_UID=5f0c\n"
            "TRAININGJOB_ATTEMPT=3\n");
}

TEST(LaunchEnv, every_injected_name_is_reserved) {
  const auto reserved = reserved_env_names();
  for (const EnvVar& variable : to_env(kWorkerOne)) {
    EXPECT_NE(std::find(reserved.begin(), reserved.end(), variable.name), reserved.end())
        << variable.name;
  }
}

TEST(LaunchEnv, four_variables_of_another_platform_are_enough) {
  const auto env = from_env(lookup_in(
      {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}}));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->attempt, 0);
  EXPECT_FALSE(env->nproc_per_node);
}

struct BadEnv {
  const char* name;
  std::optional<std::string> value;  // absent: the variable is not set
  const char* message;
};

class RefusedEnv : public testing::TestWithParam<BadEnv> {};

TEST_P(RefusedEnv, names_the_variable_its_value_and_what_is_right) {
  Variables variables = variables_of(kWorkerOne);
  variables.erase(GetParam().name);
  if (GetParam().value) variables[GetParam().name] = *GetParam().value;
  const auto env = from_env(lookup_in(variables));
  ASSERT_FALSE(env.ok());
  EXPECT_EQ(env.error().code, Code::invalid);
  EXPECT_EQ(describe(env.error()), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    LaunchEnv, RefusedEnv,
    testing::Values(
        BadEnv{"WORLD_SIZE", {}, "WORLD_SIZE: is not set; it must be the number of workers"},
        BadEnv{"WORLD_SIZE", "", "WORLD_SIZE: is empty; it must be the number of workers"},
        BadEnv{"WORLD_SIZE", "two", "WORLD_SIZE: is \"two\"; it must be a whole number from 1"},
        BadEnv{"WORLD_SIZE", "2x", "WORLD_SIZE: is \"2x\"; it must be a whole number from 1"},
        BadEnv{"WORLD_SIZE", "0", "WORLD_SIZE: is \"0\"; it must be a whole number from 1"},
        BadEnv{"WORLD_SIZE", "99999999999",
               "WORLD_SIZE: is \"99999999999\"; it must be a whole number from 1 to 2147483647"},
        BadEnv{"RANK", {}, "RANK: is not set; it must be the index of this worker, from 0"},
        BadEnv{"RANK", "-1", "RANK: is \"-1\"; it must be a whole number from 0"},
        BadEnv{"RANK", "2", "RANK: is 2 with WORLD_SIZE 2; it must be from 0 to 1"},
        BadEnv{"MASTER_ADDR",
               {},
               "MASTER_ADDR: is not set; it must be the host name or address of worker 0"},
        BadEnv{"MASTER_PORT", "0",
               "MASTER_PORT: is \"0\"; it must be a whole number from 1 to 65535"},
        BadEnv{"MASTER_PORT", "70000",
               "MASTER_PORT: is \"70000\"; it must be a whole number from 1 to 65535"},
        BadEnv{"NPROC_PER_NODE", "gpu",
               "NPROC_PER_NODE: is \"gpu\"; it must be \"auto\" or a number of processes from 1"},
        BadEnv{"TRAININGJOB_ATTEMPT", "x",
               "TRAININGJOB_ATTEMPT: is \"x\"; it must be a whole number from 0"}));

}  // namespace
}  // namespace tj
