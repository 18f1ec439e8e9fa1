#include "cli/own_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace tj {
namespace {

/// Only an address of this machine can be bound.
bool can_be_bound(const addrinfo& address) {
  const int socket = ::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return false;
  const bool is_bound = ::bind(socket, address.ai_addr, address.ai_addrlen) == 0;
  ::close(socket);
  return is_bound;
}

}  // namespace

Result<bool> is_own_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failure != 0)
    return Error{
        Code::not_found, std::string("has no address: ") + ::gai_strerror(failure), host, {}};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next)
    if (can_be_bound(*address)) return true;
  return false;
}

}  // namespace tj
