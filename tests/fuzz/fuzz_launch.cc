// Launch variables, one NAME=VALUE a line: the contract, and the identity that a worker finds.
#include <algorithm>
#include <map>
#include <sstream>

#include "contract/launch_env.h"
#include "tests/fuzz/fuzzed.h"
#include "trainer/launch/identity.h"

namespace {
using Variables = std::map<std::string, std::string, std::less<>>;

Variables variables_of(const std::string& text) {
  Variables variables;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

tj::EnvLookup lookup_in(const Variables& variables) {
  return [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

void check_contract(const tj::EnvLookup& lookup) {
  const auto env = tj::from_env(lookup);
  if (!env) return;
  Variables written;
  for (const auto& variable : tj::to_env(*env)) written[variable.name] = variable.value;
  const auto again = tj::from_env(lookup_in(written));
  TJ_CHECK(again && *again == *env, "the contract reads as it was written");
}

void check_identity(const tj::trainer::Identity& id) {
  TJ_CHECK(id.worker_count.value >= 1, "there is a worker");
  TJ_CHECK(id.worker_index.value >= 0 && id.worker_index.value < id.worker_count.value, "index");
  TJ_CHECK(id.nproc.value >= 1 && id.world_size() >= 1, "there is a process");
  if (id.rank) TJ_CHECK(id.rank->value >= 0 && id.rank->value < id.world_size(), "rank");
  TJ_CHECK(id.master_port.value >= 1 && id.master_port.value <= 65535, "port");
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto variables = variables_of(tj::fuzz::text_of(data, size));
  const auto lookup = lookup_in(variables);
  check_contract(lookup);
  for (const int gpus : {0, 8}) {
    const tj::trainer::WorkerHost host{.gpus = gpus, .cores = 4, .free_port = 4242, .name = "h"};
    for (const bool is_process : {false, true}) {
      const auto id = tj::trainer::identify(
          {.lookup = lookup, .host = host, .options = {}, .is_process = is_process});
      if (id) check_identity(*id);
    }
  }
  return 0;
}
