#include "trainer/network/master_link.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

Deadline in(milliseconds time) { return steady_clock::now() + time; }

/// Port of a socket that was bound to port 0.
int port_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)
                   ->sin_port);  // the port lies at the same place in both families
}

TEST(MasterLink, a_port_in_use_is_named) {
  auto first = ListeningSocket::open(0);
  ASSERT_TRUE(first) << describe(first.error());
  const int descriptor = std::move(*first).release();
  const int port = port_of(descriptor);
  const auto second = ListeningSocket::open(port);
  ::close(descriptor);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::conflict);
  EXPECT_EQ(describe(second.error()),
            "port " + std::to_string(port) +
                ": is already in use on this machine; another MASTER_PORT is needed");
}

TEST(MasterLink, somebody_who_listens_is_found_by_ipv4_and_by_name) {
  auto socket = ListeningSocket::open(0);
  ASSERT_TRUE(socket);
  const int descriptor = std::move(*socket).release();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto listening =
        wait_until_listening({host, port_of(descriptor)}, in(milliseconds(5000)));
    EXPECT_TRUE(listening) << host;
  }
  ::close(descriptor);
}

TEST(MasterLink, nobody_who_listens_ends_at_the_deadline_with_the_cause) {
  auto socket = ListeningSocket::open(0);
  ASSERT_TRUE(socket);
  const int descriptor = std::move(*socket).release();
  const int port = port_of(descriptor);
  ::close(descriptor);
  const auto begun = steady_clock::now();
  const auto listening = wait_until_listening({"127.0.0.1", port}, in(milliseconds(200)));
  ASSERT_FALSE(listening);
  EXPECT_EQ(listening.error().code, Code::timeout);
  EXPECT_EQ(listening.error().message, "Connection refused");
  EXPECT_LT(steady_clock::now() - begun, milliseconds(3000));
}

TEST(MasterLink, a_name_that_does_not_resolve_is_the_cause) {
  const auto listening = wait_until_listening({"no-such-host.invalid", 1}, in(milliseconds(100)));
  ASSERT_FALSE(listening);
  EXPECT_NE(listening.error().message.find("the name does not resolve"), std::string::npos)
      << listening.error().message;
}

TEST(MasterLink, the_route_to_this_machine_has_its_own_address) {
  const auto address = local_address_towards({"127.0.0.1", 29500}, in(milliseconds(1000)));
  ASSERT_TRUE(address) << describe(address.error());
  EXPECT_EQ(*address, "127.0.0.1");
}

}  // namespace
}  // namespace tj::trainer
