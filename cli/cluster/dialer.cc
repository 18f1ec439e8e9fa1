#include "cli/cluster/dialer.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cctype>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/cluster/proxy_handshake.h"

namespace tj {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kAddressesMax = 16;            // of one name
constexpr std::chrono::seconds kAddressPatience{5};  // before the next address is tried
/// As Go's dialer: a peer that is gone is noticed though nothing is said.
constexpr int kKeepAliveSeconds = 15;
constexpr int kKeepAliveProbes = 9;

Error unreachable(const std::string& message) { return Error{Code::unavailable, message, "", {}}; }

std::string in_lower_case(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

asio::awaitable<Result<std::vector<tcp::endpoint>>> resolve(const ServerUrl& url,
                                                            Interrupt& interrupt) {
  std::vector<tcp::endpoint> endpoints;
  error_code failed;
  const auto port = static_cast<unsigned short>(url.port);
  const auto address = asio::ip::make_address(url.host, failed);
  if (!failed) {
    endpoints.emplace_back(address, port);
    co_return endpoints;
  }
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  interrupt.set([&resolver] { resolver.cancel(); });
  failed = {};
  const auto found = co_await resolver.async_resolve(
      url.host, std::to_string(url.port), asio::redirect_error(asio::use_awaitable, failed));
  interrupt.set(nullptr);
  if (failed) {
    const std::string what = "the server's name can't be resolved (" + url.host + ": " +
                             in_lower_case(failed.message()) + ")";
    co_return unreachable(what);
  }
  for (const auto& entry : found) {
    if (endpoints.size() < kAddressesMax) endpoints.push_back(entry.endpoint());
  }
  co_return endpoints;
}

void set_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int descriptor = socket.native_handle();
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepAliveSeconds, sizeof(int));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepAliveSeconds, sizeof(int));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &kKeepAliveProbes, sizeof(int));
}

/// One address after the other; all but the last must answer soon.
asio::awaitable<Result<std::unique_ptr<Wire>>> connect(const ServerUrl& url, Interrupt& interrupt) {
  const auto endpoints = co_await resolve(url, interrupt);
  if (!endpoints) co_return endpoints.error();
  const auto executor = co_await asio::this_coro::executor;
  error_code failed = asio::error::host_not_found;
  for (std::size_t i = 0; i < endpoints->size() && !interrupt.fired(); ++i) {
    auto wire = tcp_wire(tcp::socket(executor));
    tcp::socket& socket = wire->socket();
    const auto connecting = std::make_shared<tcp::socket*>(&socket);  // null once it is decided
    asio::steady_timer patience(executor);
    if (i + 1 < endpoints->size()) {
      patience.expires_after(kAddressPatience);
      patience.async_wait([connecting](const error_code& stopped) {
        error_code ignored;
        if (!stopped && *connecting != nullptr) (*connecting)->close(ignored);
      });
    }
    interrupt.set([&socket] {
      error_code ignored;
      socket.close(ignored);
    });
    failed = {};
    co_await socket.async_connect((*endpoints)[i],
                                  asio::redirect_error(asio::use_awaitable, failed));
    *connecting = nullptr;
    if (!failed && socket.is_open()) {
      set_options(socket);
      co_return wire;
    }
    interrupt.set(nullptr);
  }
  const std::string what = "can't connect: " + in_lower_case(failed.message());
  co_return unreachable(what);
}

asio::awaitable<Result<std::unique_ptr<Wire>>> through_proxy(const Route& route,
                                                             Interrupt& interrupt) {
  const ServerUrl& proxy = *route.proxy;
  auto wire = co_await connect(proxy, interrupt);
  if (wire && proxy.scheme == "https") {
    auto secured = co_await tls_wire(std::move(*wire), route.proxy_identity);
    wire = std::move(secured);
  }
  if (!wire) co_return wire.error();
  const bool is_socks = proxy.scheme.starts_with("socks5");
  auto opened =
      is_socks ? socks_tunnel(std::move(*wire), route) : http_tunnel(std::move(*wire), route);
  auto tunnel = co_await std::move(opened);
  co_return tunnel;
}

Error with_proxy_named(Error error, const ServerUrl& proxy) {
  error.message = "the proxy " + host_and_port(proxy) + ": " + error.message;
  return error;
}

}  // namespace

std::string broken_text(const error_code& error) {
  const bool is_end = error == asio::error::eof || error.message() == "stream truncated" ||
                      error.message() == "end of stream" || error.message() == "partial message";
  return "the connection broke: " +
         (is_end ? std::string("the server ended it") : in_lower_case(error.message()));
}

asio::awaitable<Result<std::unique_ptr<Wire>>> dial(const Route& route,
                                                    std::shared_ptr<TlsIdentity> identity,
                                                    Interrupt& interrupt) {
  auto way = route.proxy ? through_proxy(route, interrupt) : connect(route.server, interrupt);
  auto wire = co_await std::move(way);
  if (!wire) {
    interrupt.set(nullptr);
    co_return route.proxy ? with_proxy_named(wire.error(), *route.proxy) : wire.error();
  }
  if (route.server.scheme != "https") co_return wire;
  auto secured = co_await tls_wire(std::move(*wire), std::move(identity));
  if (!secured) interrupt.set(nullptr);
  co_return secured;
}

}  // namespace tj
