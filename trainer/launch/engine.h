// `trainer train`: becomes trainer-engine, which lies beside this program and brings libtorch
// along.
#pragma once
#include <string>
#include <vector>

namespace tj::trainer {

/// Returns only when the engine could not be started: the exit code, after the cause is printed.
int become_engine(const std::vector<std::string>& arguments);

/// Where trainer-engine must lie: beside this program.
std::string engine_path();

}  // namespace tj::trainer
