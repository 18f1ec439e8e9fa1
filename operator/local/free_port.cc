#include "operator/local/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

namespace tj {
namespace {

constexpr int kPortMin = 20000;
constexpr int kPortMax = 32767;  // net.ipv4.ip_local_port_range begins at 32768
constexpr int kTriesMax = 64;

/// The port that was bound for a moment, 0 when `port` is taken. A `port` of 0 lets the kernel
/// choose.
int try_bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound = bind(fd, generic, size) == 0 && getsockname(fd, generic, &size) == 0;
  close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

Result<int> choose_free_port() {
  std::random_device random;  // two runs that start together must not walk the same ports
  std::uniform_int_distribution<int> ports(kPortMin, kPortMax);
  for (int i = 0; i < kTriesMax; ++i) {
    if (const int port = try_bind(ports(random)); port != 0) return port;
  }
  if (const int port = try_bind(0); port != 0) return port;
  return Error{.code = Code::unavailable,
               .message = std::string("no free TCP port on this machine: ") + std::strerror(errno),
               .subject = "MASTER_PORT",
               .retry_after = {}};
}

}  // namespace tj
