// The flags of `tj launch` in the words of `trainer launch`.
#include "cli/launch_words.h"

#include <gtest/gtest.h>

#include <map>

namespace tj {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

/// This machine is "here".
Result<bool> is_here(const std::string& host) {
  if (host == "nowhere") return Error{Code::not_found, "has no address", host, {}};
  return host == "here";
}

std::string said(const LaunchFlags& flags, const Variables& variables = {}) {
  const auto env = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const auto words = launch_words(flags, env, is_here);
  if (!words) return describe(words.error());
  std::string text;
  for (const std::string& word : *words) text += (text.empty() ? "" : " ") + word;
  return text;
}

TEST(LaunchWords, are_those_of_the_trainer) {
  EXPECT_EQ(said({.master = "node-a",
                  .nodes = "2",
                  .node_rank = "1",
                  .gpus_per_node = "8",
                  .port = "2345",
                  .command = {"bash", "-c", "--"}}),
            "launch --world-size 16 --gpus-per-node 8 --node-rank 1 --master-addr node-a "
            "--master-port 2345 -- bash -c --");
  EXPECT_EQ(said({.gpus_per_node = "1", .command = {"env"}}),
            "launch --world-size 1 --gpus-per-node 1 --node-rank 0 -- env");
}

TEST(LaunchWords, number_a_node_by_what_is_known) {
  const auto rank = [](const std::string& master, const std::string& nodes,
                       const Variables& variables = {}) {
    const std::string words = said(
        {.master = master, .nodes = nodes, .gpus_per_node = "1", .command = {"env"}}, variables);
    const auto at = words.find("--node-rank ");
    return words.starts_with("launch") ? words.substr(at + 12, 1) : words;
  };
  EXPECT_EQ(rank("here", "2"), "0");
  EXPECT_EQ(rank("there", "2"), "1");
  EXPECT_EQ(rank("here", "3"), "0");
  EXPECT_TRUE(rank("there", "3").starts_with("--node-rank: is missing"));
  EXPECT_EQ(rank("there", "3", {{"NODE_RANK", "2"}}), "2");
  EXPECT_TRUE(rank("there", "3", {{"NODE_RANK", "3"}}).starts_with("NODE_RANK: is \"3\""));
  EXPECT_EQ(rank("nowhere", "2"), "--master: nowhere: has no address");
  EXPECT_EQ(rank("nowhere", "1"), "0");
}

TEST(LaunchWords, that_are_wrong_are_told_by_flag) {
  struct Row {
    LaunchFlags flags;
    std::string begins;
  };
  const LaunchFlags good{.master = "m",
                         .nodes = "2",
                         .node_rank = "0",
                         .gpus_per_node = "8",
                         .port = "",
                         .command = {"env"}};
  const auto with = [&](std::string LaunchFlags::*field, const std::string& value) {
    LaunchFlags flags = good;
    flags.*field = value;
    return flags;
  };
  LaunchFlags silent = good;
  silent.command.clear();
  const std::vector<Row> table = {
      {with(&LaunchFlags::nodes, "0"), "--nodes: "},
      {with(&LaunchFlags::nodes, "two"), "--nodes: "},
      {with(&LaunchFlags::node_rank, "2"), "--node-rank: "},
      {with(&LaunchFlags::gpus_per_node, ""), "--gpus-per-node: is missing"},
      {with(&LaunchFlags::gpus_per_node, "8.5"), "--gpus-per-node: "},
      {with(&LaunchFlags::master, ""), "--master: is missing"},
      {with(&LaunchFlags::port, "70000"), "--port: "},
      {silent, "tj launch: has no command"}};
  for (const Row& row : table)
    EXPECT_TRUE(said(row.flags).starts_with(row.begins)) << said(row.flags);
}

TEST(LaunchWords, are_not_needed_where_a_worker_has_been_told_who_it_is) {
  const LaunchFlags flags{.gpus_per_node = "1", .command = {"env"}};
  EXPECT_TRUE(
      said(flags, {{"TRAININGJOB_UID", "u"}}).starts_with("TRAININGJOB_UID: is set: the operator"));
  Variables slurm{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  EXPECT_TRUE(said(flags, slurm).starts_with("SLURM_PROCID: is set: srun"));
  slurm["SLURM_STEP_NUM_TASKS"] = "1";  // srun --pty bash
  EXPECT_TRUE(said(flags, slurm).starts_with("launch "));
}

}  // namespace
}  // namespace tj
