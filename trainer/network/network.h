// Which network the ranks use, decided from what the machine shows: the interface on the route to
// the master, InfiniBand where a port of it is active, and the few variables that make NCCL and
// Gloo take them. Pure; network_facts.h looks. Variables that the user has set are never touched.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "contract/launch_env.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

/// One port of a host channel adapter, as the kernel shows it in /sys/class/infiniband.
struct HcaPort {
  std::string device;  // "mlx5_0"
  int port = 1;
  bool is_active = false;
  bool is_infiniband = true;  // else its link is Ethernet: RoCE
  int rate_gbps = 0;
  bool operator==(const HcaPort&) const = default;
};

struct NetworkFacts {
  std::string interface;       // on the route to the master; empty: not known
  std::string address;         // of this rank there
  std::vector<HcaPort> ports;  // in the order of their names
  bool has_verbs = false;      // /dev/infiniband is there: a container may be shown HCAs without it
};

inline constexpr const char* kEthernet = "Ethernet";
inline constexpr const char* kVerbs = "InfiniBand or RoCE";

struct NetworkChoice {
  std::vector<EnvVar> variables;  // to be set; those of the user are not among them
  std::vector<Setting> rows;      // for the start-up table, those of the user included
  std::string transport;          // kEthernet or kVerbs: must be equal on all ranks
  std::string control;            // what Gloo takes: "eth0 (10.0.0.3)"
  std::string path;  // "InfiniBand mlx5_0, mlx5_1 (400 Gb/s)" or "eth0 (10.0.0.3): no ..."
  bool operator==(const NetworkChoice&) const = default;
};

/// What NCCL is told; see the table in docs/launching.md.
NetworkChoice choose_network(const NetworkFacts& facts, const EnvLookup& lookup);

/// Which network carries the gradients of several workers, and why, for people.
struct NetworkUse {
  std::string network;  // "InfiniBand mlx5_0, mlx5_1 (400 Gb/s)", "Ethernet eth0"
  std::string why;      // "their ports are active", "no InfiniBand adapter"
};

/// What choose_network() comes to: by NCCL where there is a GPU, else by Gloo, which takes TCP.
NetworkUse network_in_use(const NetworkFacts& facts, const EnvLookup& lookup, bool has_gpu);

/// What the user says of Gloo in GLOO_SOCKET_IFNAME, a list with commas; empty: nothing.
std::vector<std::string> chosen_interfaces(const EnvLookup& lookup);

/// "collectives: Gloo over eth0 (10.0.0.3): no GPU is visible".
std::string describe_collectives(const NetworkChoice& choice, const std::string& why_no_gpu);
/// "collectives: NCCL over <path>; control messages: Gloo over eth0 (10.0.0.3)".
std::string describe_collectives(const NetworkChoice& choice);

}  // namespace tj::trainer
