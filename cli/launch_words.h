// The flags of `tj launch` in the words of `trainer launch`, which does the work. Pure.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"

namespace tj {

struct LaunchFlags {
  std::string master;
  std::string nodes = "1";
  std::string node_rank;
  std::string gpus_per_node;
  std::string port;
  std::vector<std::string> command;
};

/// Whether the master is this machine; asked only where nothing else says which node this is.
using IsOwnAddress = std::function<Result<bool>(const std::string& host)>;

/// The arguments of the program `trainer`, without its name. Fails with Code::invalid: the error
/// names the flag, or the variable that says who this worker is already.
Result<std::vector<std::string>> launch_words(const LaunchFlags& flags, const EnvLookup& env,
                                              const IsOwnAddress& is_own_address);

}  // namespace tj
