// The command `trainer prepare conversations`.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// Returns the exit code.
int run_prepare_conversations(const std::vector<std::string>& arguments);

}  // namespace tj::trainer
