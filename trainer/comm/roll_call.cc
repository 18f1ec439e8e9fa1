#include "trainer/comm/roll_call.h"

#include <cstddef>

#include "contract/names.h"

namespace tj::trainer {
namespace {

/// Empty where the rank says it all.
std::string worker_of(int worker, const RollCall& known) {
  const auto node = known.nodes.find(worker);
  std::string text;
  if (!known.job.empty()) {
    text = names::worker_pod(known.job, worker);
  } else if (known.local_world_size > 1) {
    text = "worker " + std::to_string(worker);
  }
  if (node != known.nodes.end()) text += (text.empty() ? "node " : ", node ") + node->second;
  return text.empty() ? "" : " (" + text + ")";
}

}  // namespace

std::string describe_absent(std::span<const int> ranks, const RollCall& known) {
  std::string text;
  int named = 0;
  for (std::size_t at = 0; at < ranks.size();) {
    const int worker = ranks[at] / known.local_world_size;
    std::size_t end = at + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1 &&
           ranks[end] / known.local_world_size == worker) {
      ++end;
    }
    if (named++ == kAbsentNamedMax)
      return text + " and " + std::to_string(ranks.size() - at) + " more";
    text += text.empty() ? "" : ", ";
    text += end - at == 1
                ? "rank " + std::to_string(ranks[at])
                : "ranks " + std::to_string(ranks[at]) + " to " + std::to_string(ranks[end - 1]);
    text += worker_of(worker, known);
    at = end;
  }
  return text;
}

}  // namespace tj::trainer
