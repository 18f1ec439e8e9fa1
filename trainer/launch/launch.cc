#include "trainer/launch/launch.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "contract/names.h"
#include "trainer/launch/env_reader.h"
#include "trainer/launch/explain.h"
#include "trainer/launch/host.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/supervisor.h"
#include "trainer/report/last_words.h"

namespace tj::trainer {
namespace {

constexpr int kNotExecutable = 126;  // as shells say it
constexpr int kNotFound = 127;

Result<LaunchPlan> plan_on_this_host(const IdentityOptions& options) {
  const auto port = free_port();
  if (!port) return port.error();
  WorkerHost host = this_host();
  host.free_port = *port;
  return plan_launch(process_env, options, host);
}

/// What a launcher can't do with a worker that `trainer env` can still describe.
Result<LaunchPlan> plan_to_launch(const LaunchOptions& options) {
  auto plan = plan_on_this_host(options.identity);
  if (!plan) return plan;
  const Identity& id = plan->identity;
  const auto local_rank = process_env("LOCAL_RANK");
  if (id.convention == Convention::processes && local_rank) {
    return invalid("LOCAL_RANK", "is \"" + *local_rank +
                                     "\": a launcher has started this process already; it must be "
                                     "unset here, or the command be run without trainer launch");
  }
  if (options.max_restarts > 0 && id.job_uid.origin == names::kEnvJobUid) {
    return invalid("--max-restarts", "is " + std::to_string(options.max_restarts) +
                                         " in a job of the operator, which restarts all workers "
                                         "together; it must not be given: " +
                                         "spec.runPolicy.maxRestarts says how often");
  }
  plan->max_restarts = options.max_restarts;
  return plan;
}

int fail(int code, const std::string& reason, const Error& error) {
  write_last_words({.reason = reason, .message = describe(error), .rank = {}, .step = {}});
  say(describe(error));
  return code;
}

int fail_to_start(const Error& error) {
  switch (error.code) {
    case Code::not_found: return fail(kNotFound, "CommandNotFound", error);
    case Code::forbidden: return fail(kNotExecutable, "CommandNotExecutable", error);
    default: return fail(exit_code::kInternal, "LaunchFailed", error);
  }
}

/// A command that isn't ours may have written its own words where kubelet reads them; they are
/// better than ours.
bool pod_has_foreign_words() {
  if (process_env(names::kEnvTerminationLog)) return false;
  std::ifstream file(names::kTerminationLogDefault);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  return !words.empty() && !from_termination_message(words);
}

int report(const LaunchEnd& end, const WordFiles& words) {
  const std::string stopped =
      end.stop_signal ? "stopped by " + describe_signal(*end.stop_signal) + "; " : "";
  if (!end.blamed) {
    const auto outcome = from_termination_message(words.read(0));
    if (outcome) write_last_words(*outcome);
    if (end.stop_signal) say(stopped + "every process ended with exit code 0");
    return exit_code::kDone;
  }
  const std::string own_words = words.read(end.blamed->env.local_rank);
  if (!own_words.empty() || !pod_has_foreign_words()) {
    write_last_words(outcome_of(*end.blamed, own_words));
  }
  say(stopped + describe_failure(*end.blamed, own_words));
  return end.blamed->exit_code;
}

int fail_to_plan(const Error& error) {
  const bool is_our_fault = error.code != Code::invalid;
  return fail(is_our_fault ? exit_code::kInternal : exit_code::kBadConfig,
              is_our_fault ? "LaunchFailed" : "BadConfig", error);
}

bool is_asked_to_stop(SignalQueue& signals) {
  const auto arrived = signals.read_all();
  return std::ranges::any_of(arrived, asks_to_stop);
}

/// False at the end: nothing failed, nobody wants another try, or there is none left.
bool wants_restart(const LaunchEnd& end, const LaunchPlan& plan, SignalQueue& signals) {
  if (!end.blamed || end.stop_signal || plan.restarts == plan.max_restarts) return false;
  return !is_permanent(end.blamed->exit_code) && !is_asked_to_stop(signals);
}

}  // namespace

int launch(const LaunchOptions& options) {
  SignalQueue signals;  // first, so that no signal is missed
  auto plan = plan_to_launch(options);
  if (!plan) return fail_to_plan(plan.error());
  say(describe(*plan));
  for (const std::string& note : plan->identity.notes) say(note);
  for (;;) {
    const WordFiles words;
    const LaunchEnd end = supervise(
        {.plan = *plan, .command = options.command, .grace = options.grace, .words = words},
        signals);
    if (end.start_error) return fail_to_start(*end.start_error);
    if (!wants_restart(end, *plan, signals)) return report(end, words);
    plan = restarted(*plan);
    say(describe_failure(*end.blamed, words.read(end.blamed->env.local_rank)) + "; restart " +
        std::to_string(plan->restarts) + " of " + std::to_string(plan->max_restarts));
  }
}

int show_env(const EnvOptions& options) {
  const auto plan = plan_on_this_host(options.identity);
  if (!plan) {
    std::fprintf(stderr, "trainer env: %s\n", describe(plan.error()).c_str());
    return plan.error().code == Code::invalid ? exit_code::kBadConfig : exit_code::kInternal;
  }
  if (options.explain) {
    std::fputs(explain(*plan).c_str(), stdout);
    return exit_code::kDone;
  }
  for (const EnvVar& var : child_env(*plan, plan->processes.front()))
    std::printf("%s=%s\n", var.name.c_str(), var.value.c_str());
  return exit_code::kDone;
}

}  // namespace tj::trainer
