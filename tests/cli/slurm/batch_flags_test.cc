// What flags may say: nothing that a line of sbatch would take for something else.
#include "cli/slurm/batch_flags.h"

#include <gtest/gtest.h>

namespace tj::slurm {
namespace {

const BatchFlags kGood = [] {
  BatchFlags flags;
  flags.name = "pi0";
  flags.nodes = "2";
  flags.gpus_per_node = "8";
  flags.command = {"env"};
  return flags;
}();

std::string said(const BatchFlags& flags) {
  const auto job = from_flags(flags);
  return job ? "" : describe(job.error());
}

TEST(BatchFlags, become_a_job) {
  BatchFlags flags = kGood;
  flags.time_limit = "1-00:00:00";
  flags.partition = "gpu";
  flags.env = {"A=b c"};
  const auto job = from_flags(flags);
  ASSERT_TRUE(job) << describe(job.error());
  EXPECT_EQ(job->node_count, 2);
  EXPECT_EQ(job->gpus_per_node, 8);
  EXPECT_EQ(job->nproc_per_node, 8);
  EXPECT_EQ(job->time_limit, "1-00:00:00");
  EXPECT_EQ(job->output_folder, "out/pi0");
  EXPECT_EQ(job->env, (std::vector<std::pair<std::string, ShellText>>{{"A", ShellText("b c")}}));
  EXPECT_FALSE(job->master_port);
}

TEST(BatchFlags, that_are_wrong_are_told_by_flag) {
  using Text = std::string BatchFlags::*;
  using Texts = std::vector<std::string> BatchFlags::*;
  const std::vector<std::tuple<Text, std::string, std::string>> texts = {
      {&BatchFlags::name, "", "--job-name: is missing"},
      {&BatchFlags::name, "a\n#SBATCH --uid=0", "--job-name: is \"a #SBATCH --uid=0\""},
      {&BatchFlags::name, "-x", "--job-name: "},
      {&BatchFlags::name, "a b", "--job-name: "},
      {&BatchFlags::name, "a%j", "--job-name: "},
      {&BatchFlags::name, "..", "--job-name: "},
      {&BatchFlags::partition, "gpu --uid=0", "--partition: "},
      {&BatchFlags::account, "$(id)", "--account: "},
      {&BatchFlags::time_limit, "soon", "--time-limit: "},
      {&BatchFlags::time_limit, "1-", "--time-limit: "},
      {&BatchFlags::time_limit, "1:2:3:4", "--time-limit: "},
      {&BatchFlags::time_limit, "10 --uid=0", "--time-limit: "},
      {&BatchFlags::nodes, "0", "--num-nodes: "},
      {&BatchFlags::gpus_per_node, "all", "--gpus-per-node: "},
      {&BatchFlags::tasks_per_node, "0", "--tasks-per-node: "},
      {&BatchFlags::restarts_max, "-1", "--max-restarts: "},
      {&BatchFlags::port, "70000", "--port: "},
      {&BatchFlags::signal_seconds, "0", "--signal-seconds: "},
      {&BatchFlags::output_folder, "a\nb", "--output-dir: "},
      {&BatchFlags::container, "docker", "--container: "},
      {&BatchFlags::container, "pyxis", "--image: is missing"},
      {&BatchFlags::image, "debian", "--image: is given"}};
  for (const auto& [field, value, begins] : texts) {
    BatchFlags flags = kGood;
    flags.*field = value;
    EXPECT_TRUE(said(flags).starts_with(begins)) << said(flags) << " for " << value;
  }
  const std::vector<std::tuple<Texts, std::string, std::string>> lists = {
      {&BatchFlags::env, "A", "--env: "},
      {&BatchFlags::env, "A-B=c", "--env: "},
      {&BatchFlags::env, "A=\x1b[2J", "--env: "},
      {&BatchFlags::env, "RANK=1", "--env: is \"RANK=1\"; it must be another name"},
      {&BatchFlags::sbatch_options, "-p", "--sbatch: "},
      {&BatchFlags::sbatch_options, "--qos=high --uid=0", "--sbatch: "},
      {&BatchFlags::sbatch_options, "--comment='x'", "--sbatch: "},
      {&BatchFlags::command, "a\x7f", "the command: "},
      {&BatchFlags::command, "\xff", "the command: "}};
  for (const auto& [field, value, begins] : lists) {
    BatchFlags flags = kGood;
    (flags.*field).push_back(value);
    EXPECT_TRUE(said(flags).starts_with(begins)) << said(flags) << " for " << value;
  }
  BatchFlags silent = kGood;
  silent.command.clear();
  EXPECT_TRUE(said(silent).starts_with("tj slurm: has neither -f nor a command"));
  BatchFlags few = kGood;
  few.cpus_per_node = "4";
  few.tasks_per_node = "8";
  EXPECT_TRUE(said(few).starts_with("--cpus-per-node: ")) << said(few);
}

TEST(BatchFlags, name_volumes_by_absolute_folders) {
  BatchFlags flags;
  flags.volumes = {"data=/lustre/a=b"};
  ASSERT_TRUE(place_of(flags));
  EXPECT_EQ(place_of(flags)->volumes.at("data"), "/lustre/a=b");
  for (const char* wrong : {"data", "=/x", "data=x", "data=/x\ny"}) {
    flags.volumes = {wrong};
    EXPECT_FALSE(place_of(flags)) << wrong;
  }
}

TEST(BatchFlags, a_training_goes_on_when_its_job_comes_back) {
  const auto command_of = [](std::vector<std::string> words) {
    BatchFlags flags = kGood;
    flags.command = std::move(words);
    const auto job = from_flags(flags);
    std::string text;
    for (const ShellText& word : job->command) text += shell_word(word) + " ";
    return text;
  };
  EXPECT_EQ(command_of({"trainer", "launch", "--", "/opt/bin/trainer", "train", "--out", "o"}),
            "trainer launch -- /opt/bin/trainer train --resume --out o ");
  EXPECT_EQ(command_of({"trainer", "train", "--resume"}), "trainer train --resume ");
  EXPECT_EQ(command_of({"python3", "train", "x"}), "python3 train x ");
}

}  // namespace
}  // namespace tj::slurm
