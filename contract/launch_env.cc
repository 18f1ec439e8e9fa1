#include "contract/launch_env.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>

#include "contract/names.h"

namespace tj {
namespace {

constexpr std::array<std::string_view, 18> kReservedNames = {
    "WORLD_SIZE",       "RANK",
    "MASTER_ADDR",      "MASTER_PORT",
    "NNODES",           "NODE_RANK",
    "NPROC_PER_NODE",   "PET_NNODES",
    "PET_NODE_RANK",    "PET_NPROC_PER_NODE",
    "PET_MASTER_ADDR",  "PET_MASTER_PORT",
    names::kEnvJobName, names::kEnvJobNamespace,
    names::kEnvJobUid,  names::kEnvAttempt,
    names::kEnvPodIp,   names::kEnvNodeName};

Error invalid(std::string_view name, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::string(name),
               .retry_after = {}};
}

Result<std::string> required(const EnvLookup& lookup, std::string_view name,
                             std::string_view meaning) {
  auto value = lookup(name);
  if (!value) return invalid(name, "is not set; it must be " + std::string(meaning));
  if (value->empty()) return invalid(name, "is empty; it must be " + std::string(meaning));
  return *value;
}

struct IntVar {
  std::string_view name;
  std::string_view meaning;
  int min = 0;
  int max = INT_MAX;
};

Result<int> required_int(const EnvLookup& lookup, const IntVar& var) {
  auto text = required(lookup, var.name, var.meaning);
  if (!text) return text.error();
  return parse_int(var.name, *text, var.min, var.max);
}

Result<std::optional<int>> nproc_from(const EnvLookup& lookup) {
  const auto text = lookup("NPROC_PER_NODE");
  if (!text || *text == "auto") return std::optional<int>{};
  auto count = parse_int("NPROC_PER_NODE", *text, 1, INT_MAX);
  if (!count)
    return invalid("NPROC_PER_NODE",
                   "is \"" + *text + "\"; it must be \"auto\" or a number of processes from 1");
  return std::optional<int>{*count};
}

}  // namespace

std::optional<std::string> process_env(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::span<const std::string_view> reserved_env_names() { return kReservedNames; }

Result<int> parse_int(std::string_view name, std::string_view text, int min, int max) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc{} && end == text.data() + text.size();
  if (whole && value >= min && value <= max) return value;
  const bool is_above = failure == std::errc::result_out_of_range && !text.starts_with('-');
  std::string range = "from " + std::to_string(min);
  if (max != INT_MAX || is_above) range += " to " + std::to_string(max);
  return invalid(name, "is \"" + std::string(text) + "\"; it must be a whole number " + range);
}

std::vector<EnvVar> to_env(const LaunchEnv& env) {
  const std::string world_size = std::to_string(env.world_size);
  const std::string rank = std::to_string(env.rank);
  const std::string port = std::to_string(env.master_port);
  const std::string nproc = env.nproc_per_node ? std::to_string(*env.nproc_per_node) : "auto";
  return {{"WORLD_SIZE", world_size},
          {"RANK", rank},
          {"MASTER_ADDR", env.master_addr},
          {"MASTER_PORT", port},
          {"NNODES", world_size},
          {"NODE_RANK", rank},
          {"NPROC_PER_NODE", nproc},
          {"PET_NNODES", world_size},
          {"PET_NODE_RANK", rank},
          {"PET_NPROC_PER_NODE", nproc},
          {"PET_MASTER_ADDR", env.master_addr},
          {"PET_MASTER_PORT", port},
          {names::kEnvJobName, env.job_name},
          {names::kEnvJobNamespace, env.job_namespace},
          {names::kEnvJobUid, env.job_uid},
          {names::kEnvAttempt, std::to_string(env.attempt)}};
}

Result<LaunchEnv> from_env(const EnvLookup& lookup) {
  LaunchEnv env;
  const auto world_size =
      required_int(lookup, {.name = "WORLD_SIZE", .meaning = "the number of workers", .min = 1});
  if (!world_size) return world_size.error();
  const auto rank =
      required_int(lookup, {.name = "RANK", .meaning = "the index of this worker, from 0"});
  if (!rank) return rank.error();
  if (*rank >= *world_size) {
    return invalid("RANK", "is " + std::to_string(*rank) + " with WORLD_SIZE " +
                               std::to_string(*world_size) + "; it must be from 0 to " +
                               std::to_string(*world_size - 1));
  }
  const auto master_addr = required(lookup, "MASTER_ADDR", "the host name or address of worker 0");
  if (!master_addr) return master_addr.error();
  const auto port = required_int(
      lookup, {.name = "MASTER_PORT", .meaning = "a TCP port of worker 0", .min = 1, .max = 65535});
  if (!port) return port.error();
  const auto nproc = nproc_from(lookup);
  if (!nproc) return nproc.error();
  const auto attempt =
      parse_int(names::kEnvAttempt, lookup(names::kEnvAttempt).value_or("0"), 0, INT_MAX);
  if (!attempt) return attempt.error();
  env.world_size = *world_size;
  env.rank = *rank;
  env.master_addr = *master_addr;
  env.master_port = *port;
  env.nproc_per_node = *nproc;
  env.job_name = lookup(names::kEnvJobName).value_or("");
  env.job_namespace = lookup(names::kEnvJobNamespace).value_or("");
  env.job_uid = lookup(names::kEnvJobUid).value_or("");
  env.attempt = *attempt;
  return env;
}

}  // namespace tj
