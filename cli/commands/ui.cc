// tj ui: a page that shows jobs, of a cluster or of this machine.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/place.h"
#include "cli/ui/serve.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj ui                           prints an address; it shows the jobs of the context's namespace
  tj ui -A                        of all namespaces
  tj ui --local                   the runs of tj run on this machine
  tj ui --out /tmp/job            one run, by the folder that tj run was given
  ssh -L 8010:127.0.0.1:8010 HOST tj ui --port 8010
                                  on another machine, seen from this one: the same port on both

It shows what the kubeconfig lets you read, changes nothing, and listens on 127.0.0.1 only. The
address holds a token: who has it sees the page.

Exit codes: 0 ended with Ctrl-C, 2 wrong input.)";

struct UiArguments {
  PlaceOptions place;
  bool all_namespaces = false;
  std::vector<std::filesystem::path> folders;
  int port = 0;
};

int answer(const Result<void>& served) {
  return served ? tj_exit::kSucceeded : refuse(served.error());
}

int serve_local(const UiArguments& arguments) {
  boost::asio::io_context loop;
  ui::Board board;
  const auto feed = ui::local_feed(loop, board, arguments.folders);
  return answer(ui::serve_until_signal(loop, board, *feed, arguments.port));
}

int serve_cluster(const UiArguments& arguments, Session& session) {
  const std::string ns = arguments.all_namespaces ? "" : session.ns();
  const std::string name = ns.empty() ? "cluster, all namespaces" : "cluster, namespace " + ns;
  ui::Board board;
  const auto feed = ui::cluster_feed(session.loop(), session.api(), board, ns, name);
  return answer(ui::serve_until_signal(session.loop(), board, *feed, arguments.port));
}

int serve(const UiArguments& arguments) {
  if (!arguments.folders.empty()) return serve_local(arguments);
  const auto place = Place::open(arguments.place);
  if (!place) return refuse(place.error());
  return (*place)->is_local() ? serve_local(arguments)
                              : serve_cluster(arguments, (*place)->session());
}

}  // namespace

void add_ui(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "ui", "a page in the browser: jobs, curves, restarts, logs; served on this machine only");
  auto arguments = std::make_shared<UiArguments>();
  command->add_flag("-A,--all-namespaces", arguments->all_namespaces, "jobs of all namespaces");
  command
      ->add_option("--out", arguments->folders,
                   "folder of a local run, as tj run was given it; may be said again (all runs)")
      ->type_name("FOLDER");
  command->add_option("--port", arguments->port, "port on 127.0.0.1 (a free one)")
      ->check(CLI::Range(1, 65535));
  add_place_flags(*command, arguments->place);
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = serve(*arguments); });
}

}  // namespace tj
