// Golden: what the machine shows and what the user has set -> what NCCL and Gloo are told, and what
// is said about it. Each case of tests/golden/comm/networks.txt is a comment, facts, "----", and
// the answer: one line for each row of the start-up table, then the sentences.
//   interface NAME ADDRESS                        the route to the master
//   port ADAPTER NUMBER state=.. link=.. rate=..  a port in a made-up /sys/class/infiniband
//   verbs                                         /dev/infiniband is there
//   env NAME=value ...                            the user's variables
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include "trainer/network/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/trainer/golden_cases.h"
#include "trainer/network/network_facts.h"

namespace tj::trainer {
namespace {

struct Case {
  TemporaryFolder folder;
  NetworkFacts facts;
  std::map<std::string, std::string, std::less<>> variables;
};

void read_port(std::istringstream& words, const Case& c) {
  std::string adapter, number, word;
  words >> adapter >> number;
  const std::string port = "adapters/" + adapter + "/ports/" + number + "/";
  c.folder.write(port + "gids/0", "");
  while (words >> word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    if (name == "state") c.folder.write(port + "state", value.substr(0, 2) + " " + value.substr(2));
    if (name == "link") c.folder.write(port + "link_layer", value + "\n");
    if (name == "rate") c.folder.write(port + "rate", value + " Gb/sec (4X)\n");
  }
}

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string kind, word;
  words >> kind;
  if (kind == "interface") words >> c.facts.interface >> c.facts.address;
  if (kind == "port") read_port(words, c);
  if (kind == "verbs") c.folder.write("verbs/uverbs0", "");
  while (kind == "env" && words >> word) {
    const auto equals = word.find('=');
    c.variables[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

std::string answer_to(Case& c) {
  const HcaFiles files{.adapters = c.folder.path() / "adapters",
                       .verbs = c.folder.path() / "verbs"};
  c.facts.ports = hca_ports(files);
  c.facts.has_verbs = std::filesystem::exists(files.verbs);
  const auto choice =
      choose_network(c.facts, [&](std::string_view name) -> std::optional<std::string> {
        const auto found = c.variables.find(name);
        if (found == c.variables.end()) return std::nullopt;
        return found->second;
      });
  std::string text;
  for (const auto& row : choice.rows) {
    const bool is_set = std::ranges::any_of(
        choice.variables, [&](const EnvVar& variable) { return variable.name == row.name; });
    text += (is_set ? "set " : "    ") + row.name + "=" + row.value + "  (" + row.origin + ")\n";
  }
  return text + choice.transport + "\n" + describe_collectives(choice) + "\n";
}

TEST(Network, each_machine_gives_the_variables_and_the_sentence) {
  expect_golden_cases<Case>("comm/networks.txt", 15, read_line, answer_to);
}

TEST(Network, without_a_gpu_gloo_alone_is_named_with_the_reason) {
  const auto choice = choose_network({.interface = "eth0", .address = "10.0.0.3"},
                                     [](std::string_view) { return std::nullopt; });
  EXPECT_EQ(describe_collectives(choice, "no GPU is visible"),
            "collectives: Gloo over eth0 (10.0.0.3): no GPU is visible");
}

TEST(Network, no_more_adapters_are_named_than_nccl_reads) {
  NetworkFacts facts{.interface = "eth0", .has_verbs = true};
  for (int index = 0; index < 40; ++index)
    facts.ports.push_back({.device = "mlx5_" + std::to_string(index), .is_active = true});
  const auto choice = choose_network(facts, [](std::string_view) { return std::nullopt; });
  const auto hcas = std::ranges::find(choice.variables, "NCCL_IB_HCA", &EnvVar::name);
  ASSERT_NE(hcas, choice.variables.end());
  EXPECT_EQ(std::ranges::count(hcas->value, ','), 31);
}

TEST(Network, which_is_taken_and_why_is_one_sentence) {
  const HcaPort first{.device = "mlx5_0", .is_active = true, .rate_gbps = 400};
  const HcaPort second{.device = "mlx5_1", .is_active = true, .rate_gbps = 400};
  const HcaPort slow{.device = "mlx5_2", .is_active = true, .rate_gbps = 100};
  const HcaPort down{.device = "mlx5_3"};
  const HcaPort roce{.device = "mlx5_4", .is_active = true, .is_infiniband = false};
  const struct {
    std::vector<HcaPort> ports;
    bool has_verbs;
    bool has_gpu;
    std::map<std::string, std::string, std::less<>> variables;
    std::string wanted;
  } kRows[] = {
      {{first, second}, true, true, {},
       "InfiniBand mlx5_0, mlx5_1 (400 Gb/s): their ports are active"},
      {{first, slow, down}, true, true, {},
       "InfiniBand mlx5_0 (400 Gb/s): its port is active, not mlx5_2, slower or of another kind"},
      {{roce}, true, true, {}, "RoCE mlx5_4: its port is active"},
      {{first}, true, true, {{"NCCL_IB_HCA", "mlx5"}}, "InfiniBand mlx5: NCCL_IB_HCA says so"},
      {{}, false, true, {}, "Ethernet eth0: no InfiniBand adapter"},
      {{down}, true, true, {}, "Ethernet eth0: no port of mlx5_3 is active"},
      {{down}, true, true, {{"NCCL_IB_HCA", "=mlx5_3"}},
       "Ethernet eth0: no port of mlx5_3 is active, though NCCL_IB_HCA is =mlx5_3"},
      {{first}, false, true, {},
       "Ethernet eth0: mlx5_0 is active, but this container has no /dev/infiniband"},
      {{first}, true, true, {{"NCCL_IB_DISABLE", "1"}}, "Ethernet eth0: NCCL_IB_DISABLE is 1"},
      {{first}, true, true, {{"NCCL_IB_DISABLE", "1"}, {"NCCL_SOCKET_IFNAME", "=eth7"}},
       "Ethernet eth7: NCCL_IB_DISABLE is 1; NCCL_SOCKET_IFNAME says which interface"},
      {{}, false, true, {{"NCCL_SOCKET_IFNAME", "^docker0"}},
       "Ethernet, but not docker0: no InfiniBand adapter; NCCL_SOCKET_IFNAME says which interface"},
      {{first}, true, false, {}, "Ethernet eth0: no GPU is visible, and Gloo takes TCP"},
      {{first}, true, false, {{"GLOO_SOCKET_IFNAME", "eth9"}},
       "Ethernet eth9: no GPU is visible, and Gloo takes TCP, where GLOO_SOCKET_IFNAME says"},
  };
  for (const auto& row : kRows) {
    const NetworkFacts facts{.interface = "eth0",
                             .address = "10.0.0.3",
                             .ports = row.ports,
                             .has_verbs = row.has_verbs};
    const auto use = network_in_use(
        facts,
        [&](std::string_view name) -> std::optional<std::string> {
          const auto found = row.variables.find(name);
          return found == row.variables.end() ? std::nullopt : std::optional(found->second);
        },
        row.has_gpu);
    EXPECT_EQ(use.network + ": " + use.why, row.wanted);
  }
}

TEST(Network, without_a_route_no_interface_is_guessed) {
  const auto use = network_in_use({}, [](std::string_view) { return std::nullopt; }, true);
  EXPECT_EQ(use.network, "Ethernet by the route to the master");
}

TEST(Network, a_list_of_interfaces_for_gloo_is_taken_apart) {
  const auto interfaces =
      chosen_interfaces([](std::string_view name) -> std::optional<std::string> {
        if (name == "GLOO_SOCKET_IFNAME") return "eth1,,eth2";
        return std::nullopt;
      });
  EXPECT_EQ(interfaces, (std::vector<std::string>{"eth1", "eth2"}));
}

}  // namespace
}  // namespace tj::trainer
