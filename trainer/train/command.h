// What workloads do beside training (workload/command.h), from the command line to an exit code.
#pragma once
#include <string_view>

#include "trainer/workload/workload.h"

namespace tj::trainer {

/// Has one of the registry's workloads a command of this name?
bool is_workload_command(Registry registry, std::string_view name);

/// argv[0] is the name of such a command, and its flags follow. Prints the cause last when it
/// fails, and what memory it took when it is done.
int run_command(int argc, const char* const* argv, Registry registry);

}  // namespace tj::trainer
