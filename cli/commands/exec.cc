// tj exec: a command in the container of one rank.
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/cluster/remote_command.h"
#include "cli/cluster/session.h"
#include "cli/cluster/terminal.h"
#include "cli/cluster/worker_pod.h"
#include "cli/commands/commands.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj exec gpt2 --rank 3 -- nvidia-smi
  tj exec gpt2 -it -- bash
  tj exec gpt2 -i -- tar xf - -C /work < files.tar

Exit codes: the command's own; 1 could not be run, 2 wrong input, 3 no such job, 4 refused,
5 no answer.)";

struct ExecArguments {
  SessionOptions session;
  std::string job;
  int rank = 0;
  std::string container;
  bool with_input = false;
  bool is_terminal = false;
  std::vector<std::string> command;
};

/// False when nobody reads it any more.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

int execute(const ExecArguments& arguments) {
  const auto session = Session::open(arguments.session);
  if (!session) return refuse(session.error());
  const auto place = find_worker(**session, arguments.job, arguments.rank, arguments.container);
  if (!place) return fail(place.error());
  const bool has_terminal = ::isatty(STDIN_FILENO) == 1;
  if (arguments.is_terminal && arguments.with_input && !has_terminal)
    std::fprintf(stderr, "warning: -t: standard input is no terminal; the container gets one\n");
  const RemoteCommand command{.ns = place->ns,
                              .pod = place->pod,
                              .container = place->container,
                              .command = arguments.command,
                              .with_input = arguments.with_input,
                              .is_terminal = arguments.is_terminal};
  const RemoteIo io{.on_output = [](std::string_view bytes) { return write_all(1, bytes); },
                    .on_error = [](std::string_view bytes) { return write_all(2, bytes); },
                    .input = STDIN_FILENO};
  std::optional<RawTerminal> raw;
  if (arguments.is_terminal && arguments.with_input && has_terminal) raw.emplace(STDIN_FILENO);
  const Result<int> ended = run_remotely((*session)->link(), command, io);
  raw.reset();  // before anything is said
  return ended ? *ended : fail(ended.error());
}

}  // namespace

void add_exec(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "exec", "run a command in the container of one rank; its exit code is ours");
  auto arguments = std::make_shared<ExecArguments>();
  add_session_flags(*command, arguments->session);
  command->add_option("job", arguments->job, "the TrainingJob")->required()->type_name("JOB");
  add_rank_flag(*command, arguments->rank);
  add_container_flag(*command, arguments->container);
  command->add_flag("-i,--stdin", arguments->with_input, "pass standard input on");
  command->add_flag("-t,--tty", arguments->is_terminal, "the command gets a terminal");
  command->add_option("command", arguments->command, "the command and its arguments, after --")
      ->required()
      ->type_name("-- CMD...");
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = execute(*arguments); });
}

}  // namespace tj
