// test_simulation: many short worlds, each from a seed of its own, and a report of what broke.
//   test_simulation --steps 1000000            as many worlds as that takes, by a seed of the clock
//   test_simulation --seed S --world W --trace one world again, with all its events
//   test_simulation --bug NAME                 with a bug planted; then finding it is the success
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>

#include "tests/sim/world.h"

namespace tj::sim {
namespace {

struct Options {
  std::uint64_t seed = 0;  // 0: drawn
  long steps = 1'000'000;
  long world = -1;  // -1: all
  long life_steps = 2'000;
  std::string bug;
  bool is_traced = false;
};

void print_violation(const World& world, const Options& options, long number) {
  for (const std::string& line : world.trace().lines()) std::printf("  %s\n", line.c_str());
  std::printf("seed %llu world %ld step %ld: broken: %s\n",
              static_cast<unsigned long long>(options.seed), number, world.steps(),
              world.violation()->c_str());
  std::printf("repeat: test_simulation --seed %llu --world %ld --trace%s%s\n",
              static_cast<unsigned long long>(options.seed), number,
              options.bug.empty() ? "" : " --bug ", options.bug.c_str());
}

/// The exit status.
int simulate(const Options& options, Bug bug) {
  using Clock = std::chrono::steady_clock;
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto began = Clock::now();
  const bool is_single = options.world >= 0;
  long steps = 0;
  for (long number = is_single ? options.world : 0; steps < options.steps; ++number) {
    World world({.seed = world_seed(options.seed, static_cast<std::uint64_t>(number)),
                 .life_steps = options.life_steps,
                 .bug = bug,
                 .is_traced = options.is_traced});
    world.run();
    steps += world.steps();
    if (world.violation()) {
      print_violation(world, options, number);
      std::printf("found after %ld steps\n", steps);
      return bug == Bug::none ? 1 : 0;
    }
    if (is_single) break;
  }
  const std::chrono::duration<double> seconds = Clock::now() - began;
  std::printf("%ld steps in %.1f s: every invariant held\n", steps, seconds.count());
  return bug == Bug::none ? 0 : 1;
}

}  // namespace
}  // namespace tj::sim

int main(int argc, char** argv) {
  using namespace tj::sim;
  Options options;
  CLI::App app{"Simulates the operator under faults and checks what must always hold."};
  app.add_option("--seed", options.seed, "of the run (default: drawn from the clock)");
  app.add_option("--steps", options.steps, "how many, over all worlds")->capture_default_str();
  app.add_option("--world", options.world, "only this one");
  app.add_option("--life", options.life_steps, "steps of a world's life")->capture_default_str();
  app.add_option("--bug", options.bug, "plant this bug");
  app.add_flag("--trace", options.is_traced, "print every event");
  CLI11_PARSE(app, argc, argv);
  if (options.seed == 0) {
    const auto ticks = std::chrono::system_clock::now().time_since_epoch().count();
    options.seed = Dice(static_cast<std::uint64_t>(ticks)).next() % 1'000'000'000;
  }
  const auto bug = options.bug.empty() ? Bug::none : parse_bug(options.bug);
  if (!bug) {
    std::fprintf(stderr, "there is no bug %s\n", options.bug.c_str());
    return 2;
  }
  spdlog::set_level(spdlog::level::off);
  return simulate(options, *bug);
}
