// Golden: what the machine shows and what the user has set -> what NCCL and Gloo are told, and what
// is said about it. Each case of tests/golden/comm/networks.txt is a comment, facts, "----", and
// the answer: one line for each row of the start-up table, then the sentences, the last of them
// that of `trainer check`.
//   interface NAME ADDRESS                        the route to the master
//   port ADAPTER NUMBER state=.. link=.. rate=..  a port in a made-up /sys/class/infiniband
//   verbs                                         /dev/infiniband is there
//   env NAME=value ...                            the user's variables
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include "trainer/network/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/trainer/golden_cases.h"
#include "tests/trainer/variables.h"
#include "trainer/network/network_facts.h"

namespace tj::trainer {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

/// The user's variables by name.
EnvLookup lookup_in(const Variables& variables) {
  return [&variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

struct Case {
  TemporaryFolder folder;
  NetworkFacts facts;
  Variables variables;
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
  const auto lookup = lookup_in(c.variables);
  const auto choice = choose_network(c.facts, lookup);
  std::string text;
  for (const auto& row : choice.rows) {
    const bool is_set = std::ranges::any_of(
        choice.variables, [&](const EnvVar& variable) { return variable.name == row.name; });
    text += (is_set ? "set " : "    ") + row.name + "=" + row.value + "  (" + row.origin + ")\n";
  }
  const auto use = network_in_use(c.facts, lookup, /*has_gpu=*/true);
  return text + choice.transport + "\n" + describe_collectives(choice) + "\ncheck: " + use.network +
         ": " + use.why + "\n";
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

TEST(Network, adapters_that_the_user_names_carry_nothing_where_no_port_is_active) {
  const NetworkFacts facts{.interface = "eth0", .ports = {{.device = "mlx5_3"}}, .has_verbs = true};
  const Variables own{{"NCCL_IB_HCA", "=mlx5_3"}};
  const auto use = network_in_use(facts, lookup_in(own), /*has_gpu=*/true);
  EXPECT_EQ(use.network, "Ethernet eth0");
  EXPECT_EQ(use.why, "no port of mlx5_3 is active, though NCCL_IB_HCA is =mlx5_3");
  const auto choice = choose_network(facts, lookup_in(own));
  EXPECT_EQ(choice.transport, kEthernet);
  EXPECT_EQ(choice.path, "eth0: " + use.why);
}

TEST(Network, without_a_gpu_it_is_ethernet_whatever_adapters_there_are) {
  const NetworkFacts facts{.interface = "eth0",
                           .ports = {{.device = "mlx5_0", .is_active = true, .rate_gbps = 400}},
                           .has_verbs = true};
  const Variables none;
  const auto use = network_in_use(facts, lookup_in(none), /*has_gpu=*/false);
  EXPECT_EQ(use.network, "Ethernet eth0");
  EXPECT_EQ(use.why, "no GPU is visible, and Gloo takes TCP");
  const Variables own{{"GLOO_SOCKET_IFNAME", "eth9"}};
  const auto chosen = network_in_use(facts, lookup_in(own), /*has_gpu=*/false);
  EXPECT_EQ(chosen.network, "Ethernet eth9");
  EXPECT_EQ(chosen.why, "no GPU is visible, and Gloo takes TCP, where GLOO_SOCKET_IFNAME says");
}

TEST(Network, without_a_route_no_interface_is_guessed) {
  const auto use = network_in_use(
      {}, [](std::string_view) { return std::nullopt; }, true);
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
