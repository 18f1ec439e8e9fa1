// Quantities as Kubernetes writes them ("500m", "1.5Gi", "2e3"), as far as SLURM counts them: whole
// processors and whole MiB. Pure.
#pragma once
#include <optional>
#include <string_view>

namespace tj::slurm {

/// Rounded up; at least 1. Absent: it is no quantity, or none that a machine has (a thousand
/// million at most).
std::optional<long long> whole_units(std::string_view quantity);
/// The same of bytes.
std::optional<long long> whole_mebibytes(std::string_view quantity);

}  // namespace tj::slurm
