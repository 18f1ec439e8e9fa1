#include "trainer/check/check_command.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "contract/outcome.h"
#include "trainer/check/engine_run.h"
#include "trainer/check/machine.h"
#include "trainer/check/nccl_lint.h"
#include "trainer/check/report.h"
#include "trainer/launch/launch.h"
#include "trainer/network/network_facts.h"

namespace tj::trainer {
namespace {
using enum Severity;

/// Paths that the scripts of large models take from variables.
constexpr const char* kPathVariables[] = {"MODEL_PATH", "VGGT_MODEL_PATH", "DATA_ROOT"};

void add(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), more.begin(), more.end());
}

Finding check_variables(const Result<LaunchPlan>& plan) {
  if (!plan)
    return {plan.error().code == Code::timeout ? retry : fatal,
            "variables",
            describe(plan.error()),
            "trainer env --explain shows where each value comes from",
            {}};
  const Identity& id = plan->identity;
  return {pass,
          "variables",
          std::string(source_of(id.convention)) + ": " + std::to_string(id.worker_count.value) +
              (id.worker_count.value == 1 ? " worker x " : " workers x ") +
              std::to_string(id.nproc.value) + (id.nproc.value == 1 ? " process" : " processes"),
          "",
          {}};
}

/// As `trainer train` opens it; none when asked to stop meanwhile.
std::optional<Finding> check_data(const CheckOptions& options, SignalQueue& signals) {
  std::string all;
  std::vector<std::string> flags;
  for (const auto& path : options.data) {
    all += (all.empty() ? "" : ", ") + path;
    flags.insert(flags.end(), {"--data", path});
  }
  if (!options.model.empty()) flags.insert(flags.end(), {"--model", options.model});
  flags.insert(flags.end(), options.training.begin(), options.training.end());
  const auto end = describe_data(flags, signals);
  if (end.stop_signal) return std::nullopt;
  if (end.description) return Finding{pass, "--data", all + ": " + *end.description, "", {}};
  return Finding{fatal, "--data", all, *end.failure + "; it must be there on every node", {}};
}

/// Of a document of `trainer plan`.
Finding judge_plan(const nlohmann::json& document) {
  const nlohmann::json none = nlohmann::json::object();
  const auto& memory = document.contains("memory") ? document["memory"] : none;
  const auto bytes = [&](const char* name) {
    const auto value = memory.find(name);
    return value != memory.end() && value->is_number() ? value->get<double>() : 0.0;
  };
  const std::string shortage = memory.value("shortage", "");
  if (!shortage.empty()) {
    const auto end = shortage.find("; ");
    std::string advice = end == std::string::npos ? "" : shortage.substr(end + 2);
    const std::string less = memory.value("takes_less", "");
    if (!less.empty()) advice += (advice.empty() ? "takes less: " : "; takes less: ") + less;
    return {fatal, "memory of a rank", shortage.substr(0, end), advice, {}};
  }
  const bool is_known = bytes("room_bytes") > 0;
  return {is_known && memory.value("with_activations", false) ? pass : warn,
          "memory of a rank",
          "needs " + size_text(bytes("bytes")) +
              (is_known ? " of " + size_text(bytes("room_bytes")) : ", of what is not known"),
          memory.value("with_activations", false) ? "" : "without activations, which are not known",
          {}};
}

/// Whether the model, trained so, fits into the memory of this machine or its GPUs; absent when
/// asked to stop meanwhile.
std::optional<Finding> check_memory(const CheckOptions& options, const LaunchPlan& plan,
                                    SignalQueue& signals) {
  // Time is not what is asked: some rate and some speed.
  std::vector<std::string> flags{"--link", "1gbps", "--step-seconds", "1"};
  if (!options.model.empty()) flags.insert(flags.end(), {"--model", options.model});
  for (const auto& path : options.data) flags.insert(flags.end(), {"--data", path});
  flags.insert(flags.end(), options.training.begin(), options.training.end());
  const int gpus = visible_gpus(process_env);
  if (gpus > 0) {
    std::uint64_t least = 0;
    for (const auto& gpu : gpus_facts(gpus).gpus)
      least = least == 0 ? gpu.memory_bytes : std::min(least, gpu.memory_bytes);
    if (least > 0) flags.insert(flags.end(), {"--gpu-memory", std::to_string(least)});
  }
  const auto end = plan_training(plan, flags, signals);
  if (end.stop_signal) return std::nullopt;
  if (end.document) return judge_plan(*end.document);
  return Finding{fatal, "memory of a rank", "can't be planned", *end.failure, {}};
}

std::vector<Finding> check_paths(const CheckOptions& options) {
  std::vector<Finding> findings;
  if (!options.init_from.empty())
    findings.push_back(judge_path(path_facts("--init-from", options.init_from)));
  for (const char* name : kPathVariables)
    if (const auto path = process_env(name))
      findings.push_back(judge_path(path_facts(name, *path)));
  if (!options.out.empty()) add(findings, judge_disk(disk_facts(options.out)));
  return findings;
}

/// What can be known of a machine without knowing who it is.
std::vector<Finding> check_machine(const CheckedWorker& worker, const NetworkFacts& network) {
  const int gpus = visible_gpus(process_env);
  const Devices devices{
      .gpus = gpus,
      .has_verbs = network.has_verbs && std::ranges::any_of(network.ports, &HcaPort::is_active)};
  std::vector<Finding> findings = judge_memory(worker, memory_facts(), devices);
  add(findings, judge_gpus(gpus == 0 ? GpusFacts{} : gpus_facts(gpus)));
  add(findings, judge_amd_gpus(amd_gpus(), gpus));
  add(findings, judge_adapters(network));
  add(findings, lint_nccl(process_variables(), lint_facts()));
  return findings;
}

WorkerFacts check_worker(const LaunchPlan& plan) {
  const Identity& id = plan.identity;
  const CheckedWorker worker{.processes = static_cast<int>(plan.processes.size()),
                             .has_rank_0 = plan.processes.front().rank == 0,
                             .master_port = id.master_port.value,
                             .master_host = id.master_addr.value};
  const MasterFacts master = master_facts(worker);
  WorkerFacts facts{.index = id.worker_index.value,
                    .node = id.node_name.value,
                    .trainer = TJ_VERSION,
                    .interface = master.interface,
                    .link_mbps = link_mbps(master.interface)};
  facts.findings.push_back(check_variables(plan));
  if (id.world_size() > 1) add(facts.findings, judge_master(worker, master));
  const NetworkFacts network = network_facts(master.address);
  add(facts.findings, check_machine(worker, network));
  facts.findings.push_back(
      judge_network(id.worker_count.value, network_in_use(network, process_env, plan.gpus > 0)));
  return facts;
}

int print(const std::vector<Finding>& findings, const CheckOptions& options,
          const nlohmann::json& document) {
  const std::string text = options.json ? document.dump(2) + "\n" : render_findings(findings);
  std::fputs(text.c_str(), stdout);
  return exit_code_for(worst(findings));
}

/// This worker's own findings: the others could not be met.
int print_alone(const WorkerFacts& facts, const CheckOptions& options) {
  std::vector<Finding> findings = facts.findings;
  for (Finding& finding : findings)
    if (finding.where.empty()) finding.where = name_of(facts);
  put_network_last(findings);
  return print(findings, options, report_json(findings));
}

int print_report(const nlohmann::json& document, const WorkerFacts& facts, bool is_rank_0,
                 const CheckOptions& options) {
  const auto findings = findings_from_json(document);
  TJ_CHECK(findings.ok(), "a report of our own engine");
  if (is_rank_0 || options.json) return print(*findings, options, document);
  std::printf("%s: %s; the table is printed by rank 0\n", name_of(facts).c_str(),
              result_line(*findings).c_str());
  return exit_code_for(worst(*findings));
}

}  // namespace

int run_check(const CheckOptions& options) {
  SignalQueue signals;
  const auto plan = find_plan(options.identity, signals);
  std::vector<Finding> paths;
  if (!options.data.empty()) {
    auto data = check_data(options, signals);
    if (!data) return exit_code::kInterrupted;
    paths.push_back(std::move(*data));
  }
  add(paths, check_paths(options));
  if (!plan) {
    WorkerFacts facts{.node = this_host().name};
    facts.findings.push_back(check_variables(plan));
    add(facts.findings, check_machine({}, network_facts("")));
    add(facts.findings, std::move(paths));
    return print_alone(facts, options);
  }
  if (!options.training.empty()) {
    auto memory = check_memory(options, *plan, signals);
    if (!memory) return exit_code::kInterrupted;
    paths.push_back(std::move(*memory));
  }
  WorkerFacts facts = check_worker(*plan);
  add(facts.findings, std::move(paths));
  const auto end = run_engines(
      {.plan = *plan, .facts = to_json(facts).dump(), .wait = options.rendezvous_timeout}, signals);
  if (end.stop_signal) return exit_code::kInterrupted;
  if (end.report)
    return print_report(*end.report, facts, plan->processes.front().rank == 0, options);
  facts.findings.push_back(*end.failure);
  return print_alone(facts, options);
}

}  // namespace tj::trainer
