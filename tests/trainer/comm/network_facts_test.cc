#include "trainer/network/network_facts.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

TEST(NetworkFacts, the_loopback_interface_of_this_machine_is_found_by_its_address) {
  const auto facts = network_facts("127.0.0.1");
  EXPECT_EQ(facts.interface, "lo");
  EXPECT_EQ(facts.address, "127.0.0.1");
}

TEST(NetworkFacts, an_address_that_nobody_here_has_leads_to_no_interface) {
  EXPECT_EQ(network_facts("192.0.2.1").interface, "");
  EXPECT_EQ(network_facts("").interface, "");
}

TEST(NetworkFacts, a_machine_without_adapters_has_no_ports) {
  const TemporaryFolder folder;
  EXPECT_TRUE(hca_ports({.adapters = folder.path() / "absent", .verbs = {}}).empty());
}

TEST(NetworkFacts, a_port_is_active_only_if_the_kernel_says_so) {
  const TemporaryFolder folder;
  folder.write("mlx5_0/ports/1/state", "4: ACTIVE\n");
  folder.write("mlx5_0/ports/1/link_layer", "InfiniBand\n");
  folder.write("mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  folder.write("mlx5_1/ports/1/state", "5: ACTIVE_DEFER\n");
  folder.write("mlx5_2/ports/1/state", "");
  const auto ports = hca_ports({.adapters = folder.path(), .verbs = {}});
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_EQ(ports[0], (HcaPort{.device = "mlx5_0",
                               .port = 1,
                               .is_active = true,
                               .is_infiniband = true,
                               .rate_gbps = 200}));
  EXPECT_FALSE(ports[1].is_active);
  EXPECT_FALSE(ports[2].is_active);
}

}  // namespace
}  // namespace tj::trainer
