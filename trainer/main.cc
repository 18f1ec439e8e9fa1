// `trainer`, the entrypoint of a worker: launches processes, checks a worker, prepares data,
// exports weights, or becomes the engine, which trains. Free of torch, so that it starts at once.
#include <cstdio>
#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "contract/outcome.h"
#include "trainer/check/check_command.h"
#include "trainer/checkpoint/export_command.h"
#include "trainer/data/prepare_command.h"
#include "trainer/launch/engine.h"
#include "trainer/launch/launch.h"
#include "trainer/launch/options.h"
#include "trainer/process/failed_writes.h"

namespace {
using namespace tj::trainer;

int run(const LaunchOptions& options) { return launch(options); }
int run(const EnvOptions& options) { return show_env(options); }
int run(const CheckOptions& options) { return run_check(options); }
int run(const PrepareArguments& prepare) {
  outlive_file_size_limits();
  return run_prepare(prepare.arguments);
}
int run(const ExportArguments& options) {
  outlive_file_size_limits();
  return run_export(options.arguments);
}
int run(const EngineOptions& options) { return become_engine(options.command, options.arguments); }
int run(const ShowText& show) {
  std::fputs(show.text.c_str(), stdout);
  return tj::exit_code::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const auto command = parse_command_line(arguments, TJ_VERSION);
    if (!command) {
      std::fprintf(stderr, "%s\n", tj::describe(command.error()).c_str());
      return tj::exit_code::kUsage;
    }
    return std::visit([](const auto& options) { return run(options); }, *command);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "trainer: %s\n", failure.what());
    return tj::exit_code::kInternal;
  }
}
