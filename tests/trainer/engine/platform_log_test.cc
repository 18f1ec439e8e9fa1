// Golden: what was found -> the lines of a start in a platform's words. Each case of
// tests/golden/trainer/platform_log.txt is a comment, facts, "----", and all lines.
//   nodes N processes N rank N gpus N     of a node; `by TEXT`: not on a platform
//   visible LIST                          CUDA_VISIBLE_DEVICES
//   network, device, data, failure TEXT   as the engine says them
//   config NAME batch N pass N lr X       `because TEXT`: why it
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include "trainer/report/platform_log.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/trainer/golden_cases.h"
#include "trainer/watch/limits.h"

namespace tj::trainer {
namespace {

struct Case {
  ProcessEnv env{.master_addr = "taehv-0", .is_on_platform = true};
  NodeGpus gpus;
  NetworkWords network{.limits = to_string(Limits{}), .rendezvous_seconds = 300};
  EnvironmentWords environment{.libtorch = "2.11.0"};
  ConfigurationWords configuration{.precision = "bf16", .data_threads = 2};
};

void read_nodes(std::istringstream& words, Case& c) {
  std::string word;
  int nodes = 1;
  words >> nodes >> word >> c.env.local_world_size >> word >> c.env.rank >> word >> c.gpus.count;
  c.env.world_size = nodes * c.env.local_world_size;
  c.env.worker_index = c.env.rank / c.env.local_world_size;
}

void read_config(std::istringstream& words, Case& c) {
  auto& configuration = c.configuration;
  std::string name, word;
  words >> name >> word >> configuration.batch_size >> word >> configuration.micro_batch >> word >>
      configuration.lr;
  configuration.config.value = name;
}

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string kind, rest;
  words >> kind;
  if (kind == "nodes") return read_nodes(words, c);
  if (kind == "config") return read_config(words, c);
  std::getline(words >> std::ws, rest);
  if (kind == "by") {
    c.env.origin = rest;
    c.env.is_on_platform = false;
  }
  if (kind == "visible") c.gpus.visible_devices = rest;
  if (kind == "network") c.network.collectives = "collectives: " + rest;
  if (kind == "device") c.environment.device = rest;
  if (kind == "data") c.environment.data = rest;
  if (kind == "because") c.configuration.config.origin = rest;
  if (kind == "failure") c.environment.failure = rest;
}

std::string answer_to(const Case& c) {
  std::string text;
  for (const auto& line : {platform_banner(c.env, c.gpus), variables_phase(c.env, c.gpus),
                           network_phase(c.network), environment_phase(c.environment),
                           configuration_phase(c.configuration, c.env), rendezvous_phase(c.env)})
    text += line + "\n";
  return text;
}

TEST(PlatformLog, a_banner_and_five_phases_say_what_was_found) {
  expect_golden_cases<Case>("trainer/platform_log.txt", 3, read_line, answer_to);
}

}  // namespace
}  // namespace tj::trainer
