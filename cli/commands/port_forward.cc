// tj port-forward: ports of this machine that lead to one rank.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/cluster/port_forward.h"
#include "cli/cluster/session.h"
#include "cli/cluster/worker_pod.h"
#include "cli/commands/commands.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj port-forward gpt2 6006               6006 here is 6006 of rank 0
  tj port-forward gpt2 8080:80 --rank 3
  tj port-forward gpt2 :6006              any free port, which is printed

Exit codes: 128 and the number of the signal that ended it, 1 failed, 2 wrong input, 3 no such
job, 4 refused, 5 no answer.)";

constexpr int kSignalled = 128;  // as a shell says it

struct ForwardArguments {
  SessionOptions session;
  std::string job;
  int rank = 0;
  std::string address = "127.0.0.1";
  std::vector<std::string> ports;
};

int forward(const ForwardArguments& arguments) {
  std::vector<ForwardedPort> ports;
  for (const std::string& text : arguments.ports) {
    const auto port = parse_forwarded_port(text);
    if (!port) return refuse(port.error());
    ports.push_back(*port);
  }
  const auto session = Session::open(arguments.session);
  if (!session) return refuse(session.error());
  const auto place = find_worker(**session, arguments.job, arguments.rank, "");
  if (!place) return fail(place.error());
  const ForwardReport report{
      .on_listening =
          [](const std::string& local, int remote) {
            std::printf("Forwarding from %s -> %d\n", local.c_str(), remote);
            std::fflush(stdout);
          },
      .on_failure =
          [](const Error& error) { std::fprintf(stderr, "%s\n", describe(error).c_str()); }};
  const ForwardPlace to{.ns = place->ns, .pod = place->pod, .address = arguments.address};
  const Result<int> ended = forward_ports((*session)->link(), to, ports, report);
  return ended ? kSignalled + *ended : fail(ended.error());
}

}  // namespace

void add_port_forward(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("port-forward", "ports of this machine that lead to one rank");
  auto arguments = std::make_shared<ForwardArguments>();
  add_session_flags(*command, arguments->session);
  command->add_option("job", arguments->job, "the TrainingJob")->required()->type_name("JOB");
  command
      ->add_option("ports", arguments->ports, "LOCAL:REMOTE, PORT for both, :REMOTE for a free one")
      ->required()
      ->type_name("LOCAL:REMOTE...");
  add_rank_flag(*command, arguments->rank);
  command->add_option("--address", arguments->address, "where to listen (127.0.0.1)")
      ->type_name("ADDRESS");
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = forward(*arguments); });
}

}  // namespace tj
