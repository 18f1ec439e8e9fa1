// `trainer train` and its like (engine_commands.h): becomes trainer-engine, which lies beside this
// program and brings libtorch along.
#pragma once
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// Returns only when the engine could not be started: the exit code, after the cause is printed.
int become_engine(const std::string& command, const std::vector<std::string>& arguments);

/// Libraries that the engine needs and the loader does not find: where there are some, it would end
/// before its first line, and without last words. Fails with Code::not_found and their names.
Result<void> check_engine_libraries();

/// Where trainer-engine must lie: beside this program.
std::string engine_path();

}  // namespace tj::trainer
