#include "trainer/launch/launch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "contract/names.h"
#include "trainer/launch/env_reader.h"
#include "trainer/launch/explain.h"
#include "trainer/launch/host.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/node_log.h"
#include "trainer/launch/statement_exchange.h"
#include "trainer/launch/statements.h"
#include "trainer/launch/supervisor.h"
#include "trainer/network/master_link.h"
#include "trainer/network/network.h"
#include "trainer/network/network_facts.h"
#include "trainer/process/last_words.h"

namespace tj::trainer {
namespace {

constexpr int kNotExecutable = 126;  // as shells say it
constexpr int kNotFound = 127;
constexpr std::chrono::milliseconds kNameServerMax{2000};  // `env --explain` waits no longer

Result<LaunchPlan> plan_on_this_host(const IdentityOptions& options) {
  const auto port = free_port();
  if (!port) return port.error();
  if (const auto named = check_visible_gpus(process_env); !named) return named.error();
  WorkerHost host = this_host();
  host.free_port = *port;
  return plan_launch(process_env, options, host);
}

/// The network as a rank started now would find it.
std::vector<Setting> network_rows(const LaunchPlan& plan) {
  const Identity& id = plan.identity;
  const auto address =
      local_address_now({id.master_addr.value, id.master_port.value}, kNameServerMax);
  const auto facts = network_facts(address ? *address : "");
  const std::string route = "computed: the route to the master";
  const auto choice = choose_network(facts, process_env);
  std::vector<Setting> rows;
  if (!address) rows.push_back({"interface", "not known yet", address.error().message});
  if (address) {
    rows.push_back({"interface", facts.interface.empty() ? "not known" : facts.interface, route});
    rows.push_back({"address here", facts.address, route});
  }
  if (plan.gpus == 0) {
    rows.push_back({"collectives", "Gloo", "computed: no GPU is visible"});
  } else {
    rows.insert(rows.end(), choice.rows.begin(), choice.rows.end());
  }
  return rows;
}

bool is_asked_to_stop(SignalQueue& signals) {
  const auto arrived = signals.read_all();
  return std::ranges::any_of(arrived, asks_to_stop);
}

/// Asks the other launchers what WORLD_SIZE counts, where the variables can't tell.
Result<LaunchPlan> settle(LaunchPlan plan, SignalQueue& signals) {
  const Identity& id = plan.identity;
  if (!id.is_ambiguous) return plan;
  const Endpoint master{id.master_addr.value, id.master_port.value};
  launcher_says("WORLD_SIZE is " + std::to_string(id.worker_count.value) + ", with " +
                std::to_string(plan.gpus) +
                " GPUs here: it may count workers or processes; asking all launchers at " +
                master.host + ":" + std::to_string(master.port));
  const auto decision =
      exchange_statements({.mine = {.world_size = id.worker_count.value,
                                    .rank = id.worker_index.value,
                                    .gpus = plan.gpus,
                                    .machine = machine_of_statements(process_env),
                                    .node = id.node_name.value},
                           .master = master,
                           .say = launcher_says,
                           .is_asked_to_stop = [&] { return is_asked_to_stop(signals); }});
  if (!decision) return decision.error();
  return plan_for(decided(id, *decision, plan.gpus), process_env, this_host());
}

/// What a launcher can't do with a worker that `trainer env` can still describe.
Result<LaunchPlan> plan_to_launch(const LaunchOptions& options, SignalQueue& signals) {
  auto plan = find_plan(options.identity, signals);
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
  launcher_says(describe(error));
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
  std::ostringstream read;
  read << file.rdbuf();
  const std::string words = read.str();
  return !words.empty() && !from_termination_message(words);
}

int report(const LaunchEnd& end, const WordFiles& words) {
  const std::string stopped =
      end.stop_signal ? "stopped by " + describe_signal(*end.stop_signal) + "; " : "";
  if (!end.blamed) {
    const auto outcome = from_termination_message(words.read(0));
    if (outcome) write_last_words(*outcome);
    if (end.stop_signal) launcher_says(stopped + "every process ended with exit code 0");
    return exit_code::kDone;
  }
  const std::string own_words = words.read(end.blamed->env.local_rank);
  if (!own_words.empty() || !pod_has_foreign_words()) {
    write_last_words(outcome_of(*end.blamed, own_words));
  }
  launcher_says(stopped + describe_failure(*end.blamed, own_words));
  return end.blamed->exit_code;
}

int fail_to_plan(const Error& error) {
  const bool is_of_statements = error.subject == "WORLD_SIZE" && error.code != Code::invalid;
  if (is_of_statements && error.code == Code::unavailable)
    return fail(exit_code::kInterrupted, "Interrupted", error);
  if (is_of_statements || error.code == Code::conflict)
    return fail(exit_code::kRendezvous, "RendezvousFailed", error);
  const bool is_our_fault = error.code != Code::invalid;
  return fail(is_our_fault ? exit_code::kInternal : exit_code::kBadConfig,
              is_our_fault ? "LaunchFailed" : "BadConfig", error);
}

/// False at the end: nothing failed, nobody wants another try, or there is none left.
bool wants_restart(const LaunchEnd& end, const LaunchPlan& plan, SignalQueue& signals) {
  if (!end.blamed || end.stop_signal || plan.restarts == plan.max_restarts) return false;
  return !is_permanent(end.blamed->exit_code) && !is_asked_to_stop(signals);
}

}  // namespace

Result<LaunchPlan> find_plan(const IdentityOptions& options, SignalQueue& signals) {
  auto plan = plan_on_this_host(options);
  if (plan) plan = settle(*std::move(plan), signals);
  return plan;
}

int launch(const LaunchOptions& options) {
  SignalQueue signals;  // first, so that no signal is missed
  auto plan = plan_to_launch(options, signals);
  if (!plan) return fail_to_plan(plan.error());
  const auto node_log = node_log_of(options.node_log, plan->identity);
  if (!node_log) return fail_to_plan(node_log.error());
  launcher_says(describe(*plan));
  for (const std::string& note : plan->identity.notes) launcher_says(note);
  for (;;) {
    const WordFiles words;
    const LaunchEnd end = supervise({.plan = *plan,
                                     .command = options.command,
                                     .grace = options.grace,
                                     .frozen = options.frozen,
                                     .words = words,
                                     .node_log = *node_log},
                                    signals);
    if (end.start_error) return fail_to_start(*end.start_error);
    if (!wants_restart(end, *plan, signals)) return report(end, words);
    plan = restarted(*plan);
    launcher_says(describe_failure(*end.blamed, words.read(end.blamed->env.local_rank)) +
                  "; restart " + std::to_string(plan->restarts) + " of " +
                  std::to_string(plan->max_restarts));
  }
}

int show_env(const EnvOptions& options) {
  const auto plan = plan_on_this_host(options.identity);
  if (!plan) {
    std::fprintf(stderr, "trainer env: %s\n", describe(plan.error()).c_str());
    return plan.error().code == Code::invalid ? exit_code::kBadConfig : exit_code::kInternal;
  }
  if (options.explain) {
    std::fputs(explain(*plan, network_rows(*plan)).c_str(), stdout);
    return exit_code::kDone;
  }
  for (const EnvVar& var : child_env(*plan, plan->processes.front()))
    std::printf("%s=%s\n", var.name.c_str(), var.value.c_str());
  return exit_code::kDone;
}

}  // namespace tj::trainer
