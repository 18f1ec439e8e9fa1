// The script holds the whole launch contract, and asks sbatch for what the job says. That it runs
// is shown by tj_slurm_test.py and, on a real SLURM, by tests/launchers.
#include "cli/slurm/batch_script.h"

#include <gtest/gtest.h>

#include "contract/launch_env.h"
#include "contract/names.h"

namespace tj::slurm {
namespace {

BatchJob small_job() {
  BatchJob job;
  job.made_from = "job.yaml";
  job.name = "nano";
  job.output_folder = "out/nano";
  job.command = {ShellText("env")};
  return job;
}

bool has_line(const std::string& script, const std::string& line) {
  return ("\n" + script).find("\n" + line + "\n") != std::string::npos;
}

bool exports(const std::string& script, std::string_view name) {
  const std::string wanted(name);
  return script.find("export " + wanted + "\n") != std::string::npos ||
         script.find(" " + wanted + "=") != std::string::npos;
}

TEST(BatchScript, sets_all_of_the_launch_contract_but_the_address_of_a_pod) {
  const std::string script = batch_script(small_job());
  for (const std::string_view name : reserved_env_names())
    EXPECT_EQ(exports(script, name), name != names::kEnvPodIp) << name;
}

TEST(BatchScript, sets_what_a_process_of_torchrun_is_told) {
  BatchJob job = small_job();
  job.tasks_per_node = 8;
  const std::string script = batch_script(job);
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                           "MASTER_ADDR", "MASTER_PORT", "TRAININGJOB_UID", "TRAININGJOB_ATTEMPT"})
    EXPECT_TRUE(exports(script, name)) << name;
  EXPECT_TRUE(script.find("WORLD_SIZE=\"$SLURM_NTASKS\"") != std::string::npos);
  EXPECT_FALSE(exports(script, "PET_NNODES"));
}

TEST(BatchScript, asks_for_what_the_job_says) {
  BatchJob job = small_job();
  EXPECT_TRUE(has_line(batch_script(job), "#SBATCH --exclusive"));
  EXPECT_TRUE(has_line(batch_script(job), "#SBATCH --mem=0"));
  EXPECT_TRUE(has_line(batch_script(job), "#SBATCH --signal=B:USR1@120"));
  job.cpus_per_node = 16;
  job.tasks_per_node = 8;
  job.gpus_per_node = 8;
  job.memory_mib = 4096;
  job.time_limit = "60";
  job.is_held = true;
  job.sbatch_options = {"--qos=high"};
  const std::string script = batch_script(job);
  for (const char* option : {"--job-name=nano", "--nodes=1", "--ntasks-per-node=8",
                             "--gpus-per-node=8", "--cpus-per-task=2", "--mem=4096M", "--time=60",
                             "--hold", "--requeue", "--open-mode=append", "--qos=high"})
    EXPECT_TRUE(has_line(script, std::string("#SBATCH ") + option)) << option;
  EXPECT_FALSE(has_line(script, "#SBATCH --exclusive"));
}

TEST(BatchScript, takes_exit_codes_as_the_rules_say_before_all_others) {
  BatchJob job = small_job();
  job.exit_rules = {{.action = FailureAction::restart_ignoring_budget, .exit_codes = {42, 137}},
                    {.action = FailureAction::fail, .exit_codes = {43}}};
  const std::string script = batch_script(job);
  const auto rule = script.find("    42 | 137) echo restart_uncounted ;;\n    43) echo fail ;;\n");
  ASSERT_NE(rule, std::string::npos);
  EXPECT_LT(rule, script.find("    64 | 65 | 78) echo fail ;;"));
}

TEST(BatchScript, no_text_ends_the_words_of_the_worker) {
  BatchJob job = small_job();
  job.command = {ShellText("env"), ShellText("x\nEND_OF_WORKER\nEND_OF_WORKER_\nid")};
  job.notes = {"a note\nid"};
  const std::string script = batch_script(job);
  EXPECT_NE(script.find("<<'END_OF_WORKER__'"), std::string::npos);
  EXPECT_TRUE(has_line(script, "# - a note id"));
}

TEST(BatchScript, mounts_where_a_runtime_is_named) {
  BatchJob job = small_job();
  job.gpus_per_node = 1;
  job.runtime = Runtime::apptainer;
  job.image = "registry/a b:1";
  job.working_folder = ShellText("/w");
  job.mounts = {{.folder = ShellText("/lustre/data"), .path = "/data", .is_read_only = true},
                {.folder = ShellText("/x"), .path = "/y"}};
  EXPECT_NE(batch_script(job).find("exec apptainer exec --nv --pwd=/w "
                                   "--bind=/lustre/data:/data:ro,/x:/y 'docker://registry/a b:1' "
                                   "env\n"),
            std::string::npos);
  job.runtime = Runtime::pyxis;
  EXPECT_NE(batch_script(job).find(
                "srun_options=(--cpu-bind=none --container-image='registry/a b:1' "
                "--container-mounts=/lustre/data:/data:ro,/x:/y --container-workdir=/w)\n"),
            std::string::npos);
}

}  // namespace
}  // namespace tj::slurm
