#include "trainer/launch/process_env.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

#include "contract/names.h"

namespace tj::trainer {
namespace {

constexpr int kPortMax = 65535;

Error invalid(std::string_view name, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::string(name),
               .retry_after = {}};
}

/// An integer variable; `what` says in words what its value must be.
struct IntVar {
  std::string_view name;
  std::string_view what;
  int min = 0;
  int max = INT_MAX;
};

Result<std::string> required(const EnvLookup& lookup, std::string_view name,
                             std::string_view what) {
  const auto value = lookup(name);
  if (!value) return invalid(name, "is not set; it must be " + std::string(what));
  if (value->empty()) return invalid(name, "is empty; it must be " + std::string(what));
  return *value;
}

Result<int> required_int(const EnvLookup& lookup, const IntVar& var) {
  const auto text = required(lookup, var.name, var.what);
  if (!text) return text.error();
  return parse_int(var.name, *text, var.min, var.max);
}

/// Reads the variable and requires it to be below the value of `bound_name`.
Result<int> index_below(const EnvLookup& lookup, const IntVar& var, std::string_view bound_name,
                        int bound) {
  const auto index = required_int(lookup, var);
  if (!index || *index < bound) return index;
  return invalid(var.name, "is " + std::to_string(*index) + " with " + std::string(bound_name) +
                               " " + std::to_string(bound) + "; it must be from 0 to " +
                               std::to_string(bound - 1));
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// What every rule takes over alike: identity and place.
Result<ProcessEnv> identity(const EnvLookup& lookup) {
  ProcessEnv env;
  env.job_uid = lookup(names::kEnvJobUid).value_or("");
  env.node_name = lookup(names::kEnvNodeName).value_or("");
  if (env.node_name.empty()) env.node_name = host_name();
  const auto attempt_text = lookup(names::kEnvAttempt).value_or("0");
  const auto attempt = parse_int(names::kEnvAttempt, attempt_text, 0, INT_MAX);
  if (!attempt) return attempt.error();
  env.attempt = *attempt;
  return env;
}

/// Sizes and ranks as a launcher counts them: in processes.
Result<ProcessEnv> counted_by_launcher(const EnvLookup& lookup, ProcessEnv env) {
  const auto world = required_int(
      lookup, {.name = "WORLD_SIZE", .what = "the number of processes of the job", .min = 1});
  if (!world) return world.error();
  const auto rank =
      index_below(lookup, {.name = "RANK", .what = "the index of this process in the job, from 0"},
                  "WORLD_SIZE", *world);
  if (!rank) return rank.error();
  const auto local_world =
      required_int(lookup, {.name = "LOCAL_WORLD_SIZE",
                            .what = "the number of processes on this worker (LOCAL_RANK is set)",
                            .min = 1});
  if (!local_world) return local_world.error();
  const auto local_rank = index_below(
      lookup,
      {.name = "LOCAL_RANK",
       .what = "the index of this process on its worker, from 0 (LOCAL_WORLD_SIZE is set)"},
      "LOCAL_WORLD_SIZE", *local_world);
  if (!local_rank) return local_rank.error();
  if (*world % *local_world != 0) {
    return invalid("WORLD_SIZE", "is " + std::to_string(*world) + " with LOCAL_WORLD_SIZE " +
                                     std::to_string(*local_world) +
                                     "; it must be a multiple of it: each worker runs as many "
                                     "processes as the others");
  }
  env.world_size = *world;
  env.rank = *rank;
  env.local_world_size = *local_world;
  env.local_rank = *local_rank;
  env.worker_index = *rank / *local_world;
  if (!lookup("GROUP_RANK")) return env;
  const auto group =
      index_below(lookup, {.name = "GROUP_RANK", .what = "the index of this worker, from 0"},
                  "WORLD_SIZE / LOCAL_WORLD_SIZE", *world / *local_world);
  if (!group) return group.error();
  env.worker_index = *group;
  return env;
}

Result<ProcessEnv> from_launcher(const EnvLookup& lookup, ProcessEnv identified) {
  auto env = counted_by_launcher(lookup, std::move(identified));
  if (!env) return env;
  const auto addr = required(lookup, "MASTER_ADDR", "the host name or address of rank 0");
  if (!addr) return addr.error();
  const auto port = required_int(
      lookup,
      {.name = "MASTER_PORT", .what = "a TCP port of rank 0's host", .min = 1, .max = kPortMax});
  if (!port) return port.error();
  env->master_addr = *addr;
  env->master_port = *port;
  env->origin = "launcher";
  return env;
}

Result<ProcessEnv> from_operator(const EnvLookup& lookup, ProcessEnv env) {
  const auto launch = from_env(lookup);
  if (!launch) return launch.error();
  env.world_size = launch->world_size;
  env.rank = launch->rank;
  env.worker_index = launch->rank;
  env.master_addr = launch->master_addr;
  env.master_port = launch->master_port;
  env.origin = "operator";
  return env;
}

}  // namespace

bool has_operator_env(const EnvLookup& lookup) {
  for (const auto name : {"WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    if (lookup(name)) return true;
  }
  return false;
}

Result<ProcessEnv> process_env_from(const EnvLookup& lookup) {
  auto env = identity(lookup);
  if (!env) return env;
  if (lookup("LOCAL_RANK") || lookup("LOCAL_WORLD_SIZE")) {
    return from_launcher(lookup, *std::move(env));
  }
  if (has_operator_env(lookup)) return from_operator(lookup, *std::move(env));
  env->origin = "none (single process)";
  return env;
}

std::vector<EnvVar> to_env(const ProcessEnv& env) {
  const auto text = [](int number) { return std::to_string(number); };
  const std::string run_id = env.job_uid.empty() ? "none" : env.job_uid + "-" + text(env.attempt);
  return {{"RANK", text(env.rank)},
          {"WORLD_SIZE", text(env.world_size)},
          {"LOCAL_RANK", text(env.local_rank)},
          {"LOCAL_WORLD_SIZE", text(env.local_world_size)},
          {"GROUP_RANK", text(env.worker_index)},
          {"GROUP_WORLD_SIZE", text(env.world_size / env.local_world_size)},
          {"ROLE_NAME", "default"},
          {"ROLE_RANK", text(env.rank)},
          {"ROLE_WORLD_SIZE", text(env.world_size)},
          {"MASTER_ADDR", env.master_addr},
          {"MASTER_PORT", text(env.master_port)},
          {"TORCHELASTIC_RUN_ID", run_id},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          // Rank 0 hosts the store itself; there is no agent that does.
          {"TORCHELASTIC_USE_AGENT_STORE", "False"}};
}

}  // namespace tj::trainer
