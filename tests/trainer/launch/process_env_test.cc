#include "trainer/launch/process_identity.h"

#include <gtest/gtest.h>

#include "tests/trainer/variables.h"

namespace tj::trainer {
namespace {

Result<ProcessEnv> read(const Variables& variables) {
  return process_env_from(lookup_in(variables), {.name = "this-host"});
}

const Variables kSecondOfFour = {{"WORLD_SIZE", "4"},          {"RANK", "3"},
                                 {"LOCAL_RANK", "1"},          {"LOCAL_WORLD_SIZE", "2"},
                                 {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "29501"}};

TEST(ProcessEnv, without_any_variable_it_is_a_single_process) {
  const auto env = read({{"NODE_NAME", "here"}});
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(*env, (ProcessEnv{.node_name = "here", .origin = "no launch variables"}));
}

TEST(ProcessEnv, a_launcher_counts_processes) {
  auto variables = kSecondOfFour;
  variables["TRAININGJOB_UID"] = "uid-1";
  variables["TRAININGJOB_ATTEMPT"] = "2";
  variables["NODE_NAME"] = "node-b";
  const auto env = read(variables);
  ASSERT_TRUE(env.ok()) << describe(env.error());
  EXPECT_EQ(*env, (ProcessEnv{.world_size = 4,
                              .rank = 3,
                              .local_rank = 1,
                              .local_world_size = 2,
                              .worker_index = 1,
                              .master_addr = "job-0.job",
                              .master_port = 29501,
                              .job_uid = "uid-1",
                              .attempt = 2,
                              .node_name = "node-b",
                              .origin = "a launcher's variables"}));
}

TEST(ProcessEnv, group_rank_names_the_worker_where_ranks_are_not_in_a_row) {
  auto variables = kSecondOfFour;
  variables["GROUP_RANK"] = "0";
  EXPECT_EQ(read(variables)->worker_index, 0);
}

TEST(ProcessEnv, the_operator_counts_workers_and_each_is_one_process) {
  const auto env = read({{"WORLD_SIZE", "2"},
                         {"RANK", "1"},
                         {"MASTER_ADDR", "job-0.job"},
                         {"MASTER_PORT", "29500"},
                         {"NPROC_PER_NODE", "8"},
                         {"NODE_NAME", "node-b"}});
  ASSERT_TRUE(env.ok()) << describe(env.error());
  EXPECT_EQ(*env, (ProcessEnv{.world_size = 2,
                              .rank = 1,
                              .worker_index = 1,
                              .master_addr = "job-0.job",
                              .master_port = 29500,
                              .node_name = "node-b",
                              .origin = "WORLD_SIZE and RANK",
                              .is_on_platform = true}));
}

TEST(ProcessEnv, a_platform_is_known_by_its_variables_and_through_its_launcher) {
  const Variables platform = {
      {"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "29500"}};
  Variables launched = kSecondOfFour;
  for (const EnvVar& var : to_env(*read(platform))) launched[var.name] = var.value;
  EXPECT_TRUE(read(launched)->is_on_platform);
  for (const char* const name : {"TRAININGJOB_UID", "TRAININGJOB_NAME"}) {
    auto of_operator = platform;
    of_operator[name] = "job";
    EXPECT_FALSE(read(of_operator)->is_on_platform) << name;
    launched[name] = "job";
    EXPECT_FALSE(read(launched)->is_on_platform) << name;
    launched.erase(name);
  }
  EXPECT_FALSE(read(kSecondOfFour)->is_on_platform);
  EXPECT_FALSE(read({{"NNODES", "2"}, {"NODE_RANK", "1"}, {"MASTER_ADDR", "a"}})->is_on_platform);
}

TEST(ProcessEnv, without_node_name_the_host_is_named) {
  EXPECT_EQ(read({})->node_name, "this-host");
}

TEST(ProcessEnv, what_is_written_for_a_child_is_read_back) {
  const ProcessEnv written{.world_size = 16,
                           .rank = 11,
                           .local_rank = 3,
                           .local_world_size = 8,
                           .worker_index = 1,
                           .master_addr = "10.0.0.7",
                           .master_port = 65535,
                           .job_uid = "uid-1",
                           .attempt = 4,
                           .node_name = "node-b",
                           .origin = "a launcher's variables"};
  Variables variables = {
      {"TRAININGJOB_UID", "uid-1"}, {"TRAININGJOB_ATTEMPT", "4"}, {"NODE_NAME", "node-b"}};
  for (const EnvVar& var : to_env(written)) variables[var.name] = var.value;
  const auto env = read(variables);
  ASSERT_TRUE(env.ok()) << describe(env.error());
  EXPECT_EQ(*env, written);
}

TEST(ProcessEnv, a_child_gets_torchruns_variables) {
  Variables variables;
  for (const EnvVar& var : to_env({.world_size = 4,
                           .rank = 3,
                           .local_rank = 1,
                           .local_world_size = 2,
                           .worker_index = 1,
                           .job_uid = "uid-1",
                           .attempt = 2})) {
    variables[var.name] = var.value;
  }
  EXPECT_EQ(variables, (Variables{{"RANK", "3"},
                                  {"WORLD_SIZE", "4"},
                                  {"LOCAL_RANK", "1"},
                                  {"LOCAL_WORLD_SIZE", "2"},
                                  {"GROUP_RANK", "1"},
                                  {"GROUP_WORLD_SIZE", "2"},
                                  {"ROLE_NAME", "default"},
                                  {"ROLE_RANK", "3"},
                                  {"ROLE_WORLD_SIZE", "4"},
                                  {"MASTER_ADDR", "127.0.0.1"},
                                  {"MASTER_PORT", "29500"},
                                  {"TORCHELASTIC_RUN_ID", "uid-1-2"},
                                  {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                  {"TRAININGJOB_UID", "uid-1"},
                                  {"TRAININGJOB_ATTEMPT", "2"}}));
}

}  // namespace
}  // namespace tj::trainer
