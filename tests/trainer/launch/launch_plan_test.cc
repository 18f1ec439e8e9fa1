#include "trainer/launch/launch_plan.h"

#include <gtest/gtest.h>

#include "tests/trainer/variables.h"

namespace tj::trainer {
namespace {

using Source = NprocChoice::Source;

const Variables kSecondOfTwo = {
    {"WORLD_SIZE", "2"}, {"RANK", "1"}, {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "29500"}};

Result<LaunchPlan> plan(const Variables& variables, WorkerHost host, NprocChoice nproc = {}) {
  if (host.free_port == 0) host.free_port = 29999;
  return plan_launch(lookup_in(variables), {.nproc = nproc}, host);
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(LaunchPlan, ranks_are_counted_in_processes) {
  const auto made = plan(with(kSecondOfTwo, "NPROC_PER_NODE", "4"), {.gpus = 4, .cores = 16});
  ASSERT_TRUE(made.ok()) << describe(made.error());
  ASSERT_EQ(made->processes.size(), 4U);
  for (int local_rank = 0; local_rank < 4; ++local_rank) {
    const ProcessEnv& process = made->processes[static_cast<std::size_t>(local_rank)];
    EXPECT_EQ(process.world_size, 8);
    EXPECT_EQ(process.rank, 4 + local_rank);
    EXPECT_EQ(process.local_rank, local_rank);
    EXPECT_EQ(process.local_world_size, 4);
    EXPECT_EQ(process.worker_index, 1);
    EXPECT_EQ(process.master_addr, "job-0.job");
    EXPECT_EQ(process.master_port, 29500);
  }
  EXPECT_EQ(made->omp_threads, 4);
}

TEST(LaunchPlan, the_number_of_processes_has_an_order_of_sources) {
  struct Case {
    Variables variables;
    NprocChoice choice;
    int gpus;
    std::size_t count;
    std::string origin;
  };
  const auto eight = with(kSecondOfTwo, "NPROC_PER_NODE", "8");
  const auto automatic = with(kSecondOfTwo, "NPROC_PER_NODE", "auto");
  const std::vector<Case> cases = {
      {eight, {Source::fixed, 3}, 4, 3, "--nproc"},
      {eight, {}, 0, 8, "NPROC_PER_NODE"},  // obeyed on a machine without GPUs too
      {eight, {Source::count_devices}, 4, 4, "GPUs"},
      {automatic, {}, 2, 2, "GPUs"},
      {kSecondOfTwo, {}, 2, 2, "GPUs"},
      {kSecondOfTwo, {}, 0, 1, "no GPU"},
      {{{"NPROC_PER_NODE", "2"}}, {}, 0, 2, "NPROC_PER_NODE"},
  };
  for (const Case& c : cases) {
    const auto made = plan(c.variables, {.gpus = c.gpus, .cores = 1}, c.choice);
    ASSERT_TRUE(made.ok()) << describe(made.error());
    EXPECT_EQ(made->processes.size(), c.count) << c.origin;
    EXPECT_EQ(made->identity.nproc.origin, c.origin);
  }
}

TEST(LaunchPlan, a_worker_that_is_alone_takes_a_free_port) {
  const auto made = plan({}, {.gpus = 0, .cores = 1, .free_port = 4711});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->processes[0].world_size, 1);
  EXPECT_EQ(made->processes[0].master_addr, "127.0.0.1");
  EXPECT_EQ(made->processes[0].master_port, 4711);
}

TEST(LaunchPlan, threads_are_shared_out_unless_the_user_has_said) {
  EXPECT_EQ(plan({}, {.cores = 16}, {Source::fixed, 3})->omp_threads, 5);
  EXPECT_EQ(plan({}, {.cores = 2}, {Source::fixed, 3})->omp_threads, 1);
  EXPECT_EQ(plan({{"OMP_NUM_THREADS", "7"}}, {.cores = 16})->omp_threads, std::nullopt);
  const auto made = plan({{"OMP_NUM_THREADS", "7"}}, {.cores = 16});
  for (const EnvVar& var : child_env(*made, made->processes[0])) {
    EXPECT_NE(var.name, "OMP_NUM_THREADS");
  }
}

TEST(LaunchPlan, one_line_says_what_was_decided_and_from_what) {
  const auto made = plan(with(kSecondOfTwo, "NPROC_PER_NODE", "8"), {.gpus = 0, .cores = 16});
  EXPECT_EQ(describe(*made),
            "worker 1 of 2 (WORLD_SIZE and RANK), 8 processes (NPROC_PER_NODE), 16 in all, "
            "0 GPUs visible, master job-0.job:29500, OMP_NUM_THREADS=2");
}

TEST(LaunchPlan, a_restart_is_another_attempt_of_the_same_ranks) {
  auto first = *plan(with(kSecondOfTwo, "TRAININGJOB_ATTEMPT", "4"), {.cores = 1});
  first.max_restarts = 3;
  const auto again = restarted(restarted(first));
  Variables variables;
  for (const EnvVar& var : child_env(again, again.processes[0])) variables[var.name] = var.value;
  EXPECT_EQ(variables["RANK"], "1");
  EXPECT_EQ(variables["TRAININGJOB_ATTEMPT"], "6");
  EXPECT_EQ(variables["TORCHELASTIC_RESTART_COUNT"], "2");
  EXPECT_EQ(variables["TORCHELASTIC_MAX_RESTARTS"], "3");
}

}  // namespace
}  // namespace tj::trainer
