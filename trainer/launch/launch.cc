#include "trainer/launch/launch.h"

#include <fstream>
#include <iterator>
#include <string>

#include "contract/names.h"
#include "trainer/launch/host.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/supervisor.h"
#include "trainer/report/last_words.h"

namespace tj::trainer {
namespace {

constexpr int kNotExecutable = 126;  // as shells say it
constexpr int kNotFound = 127;

Result<LaunchPlan> plan_on_this_host(const LaunchOptions& options) {
  const auto port = free_port();
  if (!port) return port.error();
  const WorkerHost host{
      .gpus = visible_gpus(process_env), .cores = usable_cores(), .free_port = *port};
  return plan_launch(process_env, options.nproc, host);
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

}  // namespace

int launch(const LaunchOptions& options) {
  SignalQueue signals;  // first, so that no signal is missed
  const auto plan = plan_on_this_host(options);
  if (!plan) {
    const bool is_our_fault = plan.error().code != Code::invalid;
    return fail(is_our_fault ? exit_code::kInternal : exit_code::kBadConfig,
                is_our_fault ? "LaunchFailed" : "BadConfig", plan.error());
  }
  say(describe(*plan));
  const WordFiles words;
  const LaunchEnd end = supervise(
      {.plan = *plan, .command = options.command, .grace = options.grace, .words = words}, signals);
  if (end.start_error) return fail_to_start(*end.start_error);
  return report(end, words);
}

}  // namespace tj::trainer
