// SLURM's compressed lists: hosts as in "node[001-003,007]", counts as in "8(x2),4". Pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

inline constexpr std::size_t kHostsMax = 65536;    // SLURM's own bound on nodes of a cluster
inline constexpr std::size_t kHostBytesMax = 253;  // RFC 1035, 2.3.4, as a text without the root

/// Every host by name, in SLURM's order. Fails with Code::invalid, the subject left empty.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Tasks of each node. Fails with Code::invalid, the subject left empty.
Result<std::vector<int>> expand_task_counts(std::string_view text);

}  // namespace tj::trainer
