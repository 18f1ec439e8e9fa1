// Shares as people write them: 1% or 0.01.
#pragma once
#include <optional>
#include <string>

namespace tj::trainer {

/// Absent for what is no number from 0 to 1, or from 0 to 100 before a percent sign.
std::optional<double> share_from(std::string text);

}  // namespace tj::trainer
