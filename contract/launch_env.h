// The launch contract: what a worker is told, as variables, written once for both sides.
// The operator calls to_env, the trainer from_env; a test round-trips them.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj {

/// One worker (pod) of a job. WORLD_SIZE and RANK count workers here, never processes.
struct LaunchEnv {
  int world_size = 1;  // number of workers, >= 1
  int rank = 0;        // index of this worker, 0 <= rank < world_size
  std::string master_addr;
  int master_port = 0;                // 1..65535
  std::optional<int> nproc_per_node;  // processes per worker, >= 1; absent: "auto"
  std::string job_name;
  std::string job_namespace;
  std::string job_uid;
  int attempt = 0;  // one value for the whole gang
  bool operator==(const LaunchEnv&) const = default;
};

struct EnvVar {
  std::string name;
  std::string value;
  bool operator==(const EnvVar&) const = default;
};

/// Looks a variable up; absent when it is not set. `process_env` reads the real environment.
using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;
std::optional<std::string> process_env(std::string_view name);

/// All variables of the contract with fixed values, in the order in which they are injected.
std::vector<EnvVar> to_env(const LaunchEnv& env);

/// Reads the contract back. Fails with Code::invalid; the error names the variable, its value and
/// what is right. The identity (TRAININGJOB_*) may be absent: another platform gave us the four
/// variables alone.
Result<LaunchEnv> from_env(const EnvLookup& lookup);

/// Names that a user's manifest may not set: all of to_env plus the downward-API ones.
std::span<const std::string_view> reserved_env_names();

/// A whole decimal number in [min, max]; the error names `name`, the text and the range.
Result<int> parse_int(std::string_view name, std::string_view text, int min, int max);

}  // namespace tj
