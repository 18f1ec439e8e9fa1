#include "operator/plan/excluded_nodes.h"

#include <algorithm>

namespace tj {
namespace {

/// The scheduler has no node for a worker but those that are excluded: of no other it says that it
/// is merely full. A worker whose pod was made with them left out.
const Pod* find_excluded_from_all(const Gang& gang) {
  for (const Pod* pod : gang.by_rank) {
    if (pod == nullptr || has_started(*pod) || pod->waiting_reason != "Unschedulable") continue;
    const std::string& why = pod->waiting_message;
    const auto says = [&why](const char* part) { return why.find(part) != std::string::npos; };
    const bool is_full_somewhere =
        says("Insufficient ") || says("Too many pods") || says("free ports");
    if (says("didn't match Pod's node affinity") && !is_full_somewhere) return pod;
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> end_of_exclusion(const Observed& observed, const Gang& gang) {
  const JobStatus& status = observed.job.status;
  if (status.excluded_nodes.empty() || !status.last_exclusion_time) return std::nullopt;
  const auto length = observed.job.spec.node_loss.exclude;
  if (observed.now >= *status.last_exclusion_time + length) {
    return "excluded for nodeLoss.excludeSeconds, " + std::to_string(length.count()) + " s";
  }
  const Pod* pod = find_excluded_from_all(gang);
  if (pod == nullptr) return std::nullopt;
  return "no other node takes worker " + std::to_string(pod->worker_index);
}

std::string readmit_nodes(JobStatus& status, const std::string& why) {
  std::string names;
  for (const std::string& node : status.excluded_nodes) {
    names += (names.empty() ? "" : ", ") + node;
    std::erase_if(status.node_failures,
                  [&](const NodeFailures& each) { return each.node == node; });
  }
  const bool is_one = status.excluded_nodes.size() == 1;
  status.excluded_nodes.clear();
  status.last_exclusion_time.reset();
  return (is_one ? "node " : "nodes ") + names + " may be used again: " + why;
}

}  // namespace tj
