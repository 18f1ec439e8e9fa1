#include "trainer/network/master_link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRetryFirst{50};
// All should have met within a second of the last one's start.
constexpr milliseconds kRetryMax{500};
// One try. The address may be that of an earlier attempt, where nobody answers any more: the name
// is resolved anew for each.
constexpr milliseconds kConnectMax{1000};
constexpr int kBacklog = 1024;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

milliseconds left(Deadline deadline) {
  return std::max(milliseconds(0),
                  std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now()));
}

Result<Addresses> resolve(const Endpoint& endpoint, int socket_type) {
  addrinfo hints{};
  hints.ai_socktype = socket_type;
  addrinfo* found = nullptr;
  const int failed =
      ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (failed == 0) return Addresses(found, &::freeaddrinfo);
  return Error{
      .code = Code::unavailable,
      .message = "the name does not resolve (" + std::string(::gai_strerror(failed)) + ")"};
}

struct Socket {
  explicit Socket(int opened) : descriptor(opened) {}
  Socket(Socket&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (descriptor >= 0) ::close(descriptor);
  }
  int descriptor;
};

/// Empty when `socket` is connected, else the cause.
std::string try_connect(const Socket& socket, const addrinfo& address, milliseconds limit) {
  if (socket.descriptor < 0) return std::strerror(errno);
  if (::connect(socket.descriptor, address.ai_addr, address.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return std::strerror(errno);
  pollfd waiting{.fd = socket.descriptor, .events = POLLOUT, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(limit.count())) == 0) return "no answer";
  int error_number = 0;
  socklen_t length = sizeof error_number;
  ::getsockopt(socket.descriptor, SOL_SOCKET, SO_ERROR, &error_number, &length);
  return error_number == 0 ? "" : std::strerror(error_number);
}

Result<Socket> connect_once(const Endpoint& master, Deadline deadline) {
  const auto addresses = resolve(master, SOCK_STREAM);
  if (!addresses) return addresses.error();
  std::string cause;
  for (const addrinfo* address = addresses->get(); address != nullptr; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    cause = try_connect(socket, *address, std::min(kConnectMax, left(deadline)));
    if (cause.empty()) return socket;
  }
  return Error{.code = Code::unavailable, .message = cause};
}

Result<std::string> route_once(const Endpoint& master) {
  const auto addresses = resolve(master, SOCK_DGRAM);
  if (!addresses) return addresses.error();
  const addrinfo& address = **addresses;
  // Connecting a datagram socket sends nothing; the kernel only chooses route and source address.
  const Socket socket{::socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  char text[NI_MAXHOST];
  if (socket.descriptor < 0 ||
      ::connect(socket.descriptor, address.ai_addr, address.ai_addrlen) != 0 ||
      ::getsockname(socket.descriptor, reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    return Error{.code = Code::unavailable,
                 .message = std::string("no route: ") + std::strerror(errno)};
  }
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return Error{.code = Code::internal, .message = "the local address has no text"};
  }
  return std::string(text);
}

/// Tries until it works or the deadline has passed, with growing pauses.
template <typename Try>
auto retry_until(Deadline deadline, Try&& attempt) -> decltype(attempt()) {
  for (milliseconds pause = kRetryFirst;; pause = std::min(kRetryMax, pause * 2)) {
    auto outcome = attempt();
    if (outcome.ok() || left(deadline) == milliseconds(0)) return outcome;
    std::this_thread::sleep_for(std::min(pause, left(deadline)));
  }
}

Error timed_out(const Error& last) { return {.code = Code::timeout, .message = last.message}; }

}  // namespace

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<ListeningSocket> ListeningSocket::open(int port) {
  const auto failed = [port](int error_number) {
    const bool taken = error_number == EADDRINUSE;
    return Error{
        .code = taken ? Code::conflict : Code::unavailable,
        .message = taken ? "is already in use on this machine; another MASTER_PORT is needed"
                         : std::string("can't be listened on: ") + std::strerror(error_number),
        .subject = "port " + std::to_string(port)};
  };
  const bool has_ipv6 = Socket{::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)}.descriptor >= 0;
  ListeningSocket socket(::socket(has_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(static_cast<std::uint16_t>(port));
  if (has_ipv6) ::setsockopt(socket.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  const auto* const address = has_ipv6 ? reinterpret_cast<const sockaddr*>(&any6)
                                       : reinterpret_cast<const sockaddr*>(&any4);
  if (::bind(socket.descriptor_, address, has_ipv6 ? sizeof any6 : sizeof any4) != 0)
    return failed(errno);
  if (::listen(socket.descriptor_, kBacklog) != 0) return failed(errno);
  return socket;
}

Result<std::string> local_address_towards(const Endpoint& master, Deadline deadline) {
  auto address = retry_until(deadline, [&] { return route_once(master); });
  if (!address) return timed_out(address.error());
  return address;
}

Result<std::string> local_address_now(const Endpoint& master, milliseconds limit) {
  // getaddrinfo() knows no deadline: its thread is left alone.
  std::promise<Result<std::string>> promise;
  auto answer = promise.get_future();
  std::thread([master, promise = std::move(promise)]() mutable {
    promise.set_value(route_once(master));
  }).detach();
  if (answer.wait_for(limit) == std::future_status::ready) return answer.get();
  return Error{.code = Code::timeout, .message = "no name server answers"};
}

Result<int> connect_to(const Endpoint& master, Deadline deadline) {
  auto socket = connect_once(master, deadline);
  if (!socket) return socket.error();
  return std::exchange(socket->descriptor, -1);
}

Result<void> wait_until_listening(const Endpoint& master, Deadline deadline) {
  const auto connected = retry_until(deadline, [&] { return connect_once(master, deadline); });
  if (!connected) return timed_out(connected.error());
  return {};
}

}  // namespace tj::trainer
