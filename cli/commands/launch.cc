// tj launch: a training that is started by hand on each node. `trainer launch` does it; here its
// flags are found.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "cli/command_words.h"
#include "cli/commands/commands.h"
#include "cli/launch_words.h"
#include "cli/own_address.h"
#include "cli/trainer_program.h"

namespace tj {
namespace {

constexpr const char* kNotes = R"(
The same command on each node, but for --node-rank. Where neither that nor NODE_RANK is given, the
node whose address --master is is node 0, and of two nodes the other one is node 1. It becomes
`trainer launch`, which is found beside tj, in PATH or by TJ_TRAINER_PATH, and its exit code is that
of the command.

Examples:
  tj launch --master node-a --nodes 2 --node-rank 1 --gpus-per-node 8 -- python3 train.py
                                      on the second of two nodes of 8 GPUs)";

int launch(const LaunchFlags& flags) {
  auto words = launch_words(flags, process_env, is_own_address);
  if (!words) return refuse(words.error());
  std::string program = find_trainer();
  if (program.empty()) {
    return refuse({Code::not_found,
                   "is neither beside tj nor in PATH; TJ_TRAINER_PATH names its folder",
                   "trainer",
                   {}});
  }
  std::vector<char*> arguments{program.data()};
  for (std::string& word : *words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return refuse(
      {Code::internal, std::string("cannot be run: ") + std::strerror(errno), program, {}});
}

}  // namespace

void add_launch(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("launch", "start a training by hand, with this command on each node");
  auto flags = std::make_shared<LaunchFlags>();
  const auto add = [&](const char* names, std::string& value, const char* type, const char* help) {
    return command->add_option(names, value, help)->type_name(type);
  };
  add("--master,--master-addr", flags->master, "HOST", "where node 0 is met");
  add("--nodes,--num-nodes", flags->nodes, "N", "number of nodes")->capture_default_str();
  add("--node-rank", flags->node_rank, "N",
      "which node this is, from 0 (NODE_RANK, else by the address of --master)");
  add("--gpus-per-node", flags->gpus_per_node, "N", "GPUs of each node: a process for each");
  add("--port,--master-port", flags->port, "PORT", "a port of node 0 (29500)");
  add_command_words(*command, flags->command, "-- COMMAND...");
  command->footer(kNotes);
  command->callback([flags, &exit_code] { exit_code = launch(*flags); });
}

}  // namespace tj
