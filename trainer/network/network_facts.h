// Looks at the machine for network.h: interfaces, and the adapters of InfiniBand and RoCE.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/network/network.h"

namespace tj::trainer {

/// Where the kernel shows adapters; other places only in tests.
struct HcaFiles {
  std::filesystem::path adapters = "/sys/class/infiniband";
  std::filesystem::path verbs = "/dev/infiniband";
};

/// All ports of all adapters by name and number; what can't be read is not active.
std::vector<HcaPort> hca_ports(const HcaFiles& files = {});

/// Numeric address (IPv4 or IPv6, without a zone) -> name of the interface that carries it.
std::map<std::string, std::string> interfaces_by_address();

/// Whether GLOO_SOCKET_IFNAME names interfaces of this machine; the error names those that it has.
Result<void> check_interfaces(const std::vector<std::string>& names);

/// Facts of this machine for a rank whose address towards the master is `address` (empty: unknown).
NetworkFacts network_facts(const std::string& address, const HcaFiles& files = {});

}  // namespace tj::trainer
