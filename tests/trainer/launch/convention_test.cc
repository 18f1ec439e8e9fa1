// Golden: environments and flags -> who this worker is and from what, or why not. Each case of
// tests/golden/launch/conventions.txt is a comment, what the launcher finds, "----", and what it
// says.
//   env NAME=value ...   variables
//   flags --name value   flags of `trainer env`
//   host gpus=8 cores=16 the machine; without it no GPU and 16 cores
//   process              as `trainer train` reads it, without a launcher
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/trainer/golden_cases.h"
#include "tests/trainer/variables.h"
#include "trainer/launch/explain.h"
#include "trainer/launch/options.h"
#include "trainer/launch/process_identity.h"

namespace tj::trainer {
namespace {

struct Case {
  Variables variables;
  std::vector<std::string> flags{"env"};
  WorkerHost host{.gpus = 0, .cores = 16, .free_port = 40000, .name = "this-host"};
  bool is_process = false;
};

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string word;
  words >> word;
  const std::string kind = word;
  if (kind == "process") c.is_process = true;
  while (words >> word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (kind == "env") c.variables[name] = word.substr(equals + 1);
    if (kind == "flags") c.flags.push_back(word);
    if (kind != "host") continue;
    (name == "gpus" ? c.host.gpus : c.host.cores) = std::stoi(word.substr(equals + 1));
  }
}

std::string describe(const ProcessEnv& env) {
  const auto of = [](int index, int count) {
    return std::to_string(index) + " of " + std::to_string(count);
  };
  return "rank " + of(env.rank, env.world_size) + ", local rank " +
         of(env.local_rank, env.local_world_size) + ", worker " + std::to_string(env.worker_index) +
         ", master " + env.master_addr + ":" + std::to_string(env.master_port) + ", key " +
         env.job_uid + "/" + std::to_string(env.attempt) + ", node " + env.node_name + " (" +
         env.origin + ")\n";
}

std::string answer_to(const Case& c) {
  const EnvLookup lookup = lookup_in(c.variables);
  const auto refused = [](const Error& error) { return "refused: " + tj::describe(error) + "\n"; };
  if (c.is_process) {
    const auto env = process_env_from(lookup, c.host);
    return env ? describe(*env) : refused(env.error());
  }
  const auto options = parse_command_line(c.flags, "");
  if (!options) return refused(options.error());
  const auto plan = plan_launch(lookup, std::get<EnvOptions>(*options).identity, c.host);
  return plan ? explain(*plan) : refused(plan.error());
}

TEST(Conventions, each_environment_gives_the_decision_and_its_explanation) {
  expect_golden_cases<Case>("launch/conventions.txt", 60, read_line, answer_to);
}

/// What worker `index` of `count`, with `nproc` processes, finds under each convention.
std::vector<Case> all_ways_to_say(int count, int index, int nproc) {
  const auto text = [](int number) { return std::to_string(number); };
  std::vector<Case> cases(5);
  cases[0].variables = {
      {"WORLD_SIZE", text(count)}, {"RANK", text(index)},           {"MASTER_ADDR", "a"},
      {"MASTER_PORT", "29500"},    {"NPROC_PER_NODE", text(nproc)}, {"NNODES", text(count)},
      {"NODE_RANK", text(index)},  {"TRAININGJOB_UID", "u"}};
  cases[1].variables = {{"PET_NNODES", text(count)},         {"PET_NODE_RANK", text(index)},
                        {"PET_NPROC_PER_NODE", text(nproc)}, {"PET_MASTER_ADDR", "a"},
                        {"WORLD_SIZE", text(count * nproc)}, {"RANK", text(index)}};
  cases[2].variables = {{"NNODES", text(count)}, {"NODE_RANK", text(index)}, {"MASTER_ADDR", "a"}};
  cases[2].host.gpus = nproc;
  cases[3].flags = {"env",       "--world-size", text(count * nproc), "--gpus-per-node",
                    text(nproc), "--node-rank",  text(index),         "--master-addr",
                    "a"};
  cases[4].variables = {{"SLURM_JOB_ID", "7"},
                        {"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", text(index)},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", text(index)},
                        {"SLURM_STEP_NUM_TASKS", text(count)},
                        {"SLURM_STEP_NUM_NODES", text(count)},
                        {"SLURM_STEP_TASKS_PER_NODE", "1(x" + text(count) + ")"},
                        {"SLURM_STEP_NODELIST", "n[1-" + text(count) + "]"}};
  cases[4].host.gpus = nproc;
  if (count == 1) cases.pop_back();  // one task alone is no reason to follow SLURM
  return cases;
}

TEST(Conventions, whoever_says_it_all_ranks_are_there_once) {
  for (int count = 1; count <= 4; ++count) {
    for (int nproc = 1; nproc <= 4; ++nproc) {
      std::map<std::size_t, std::multiset<int>> ranks;  // by convention
      for (int index = 0; index < count; ++index) {
        const auto cases = all_ways_to_say(count, index, nproc);
        for (std::size_t way = 0; way < cases.size(); ++way) {
          const auto options = parse_command_line(cases[way].flags, "");
          const auto plan = plan_launch(lookup_in(cases[way].variables),
                                        std::get<EnvOptions>(*options).identity, cases[way].host);
          ASSERT_TRUE(plan) << way << ": " << tj::describe(plan.error());
          for (const ProcessEnv& process : plan->processes) {
            EXPECT_EQ(process.world_size, count * nproc);
            EXPECT_EQ(process.worker_index, index);
            ranks[way].insert(process.rank);
          }
        }
      }
      for (const auto& [way, found] : ranks) {
        std::multiset<int> wanted;
        for (int rank = 0; rank < count * nproc; ++rank) wanted.insert(rank);
        EXPECT_EQ(found, wanted) << "way " << way << ", " << count << " x " << nproc;
      }
    }
  }
}

}  // namespace
}  // namespace tj::trainer
