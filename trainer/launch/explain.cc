#include "trainer/launch/explain.h"

#include <vector>

namespace tj::trainer {
namespace {

std::string ranks_of(const LaunchPlan& plan) {
  const int first = plan.processes.front().rank;
  const int last = plan.processes.back().rank;
  return std::to_string(first) + (first == last ? "" : " to " + std::to_string(last));
}

}  // namespace

std::string explain(const LaunchPlan& plan, std::span<const Setting> network) {
  const Identity& id = plan.identity;
  const auto row = [](const char* name, const auto& fact) {
    return Setting{name, std::to_string(fact.value), fact.origin};
  };
  std::vector<Setting> rows{
      {"convention", std::string(to_string(id.convention)), id.because},
      row("workers", id.worker_count),
      row("this worker", id.worker_index),
      row("processes per worker", id.nproc),
      {"processes", std::to_string(id.world_size()), "computed: workers x processes per worker"},
      {"ranks here", ranks_of(plan),
       id.rank ? id.rank->origin : "computed: this worker x processes per worker"}};
  if (id.local_rank) rows.push_back(row("local rank", *id.local_rank));
  rows.push_back({"master address", id.master_addr.value, id.master_addr.origin});
  rows.push_back(row("master port", id.master_port));
  rows.push_back(
      {"job uid", id.job_uid.value.empty() ? "none" : id.job_uid.value, id.job_uid.origin});
  rows.push_back(row("attempt", id.attempt));
  rows.push_back({"node", id.node_name.value, id.node_name.origin});
  rows.push_back({"threads per process", plan.threads.value, plan.threads.origin});
  rows.insert(rows.end(), network.begin(), network.end());
  std::string text = render_settings(rows);
  for (const auto& note : id.notes) text += note + "\n";
  if (id.is_ambiguous) {
    text +=
        "WORLD_SIZE is taken as the number of workers, but may count processes: trainer launch "
        "asks all "
        "launchers, or --convention workers or --convention processes says it\n";
  }
  return text;
}

}  // namespace tj::trainer
