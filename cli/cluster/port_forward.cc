#include "cli/cluster/port_forward.h"

#include <signal.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "cli/cluster/channel_socket.h"
#include "contract/utf8.h"

namespace tj {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

enum Channel { data_channel, error_channel };

constexpr int kPortMax = 65535;
constexpr int kConnectionsMax = 128;  // at one time; each has a WebSocket
constexpr std::size_t kChunkBytes = 32 * 1024;
constexpr std::size_t kPortBytes = 2;  // what each channel begins with
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::size_t kErrorBytesMax = 4096;

std::optional<int> port_in(std::string_view text, int min) {
  int port = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_whole = read.ec == std::errc{} && read.ptr == text.data() + text.size();
  if (!is_whole || port < min || port > kPortMax) return std::nullopt;
  return port;
}

std::string forward_target(const ForwardPlace& place, int remote) {
  return "/api/v1/namespaces/" + percent_encode(place.ns) + "/pods/" + percent_encode(place.pod) +
         "/portforward?ports=" + std::to_string(remote);
}

/// A part of a channel without the two bytes that it begins with.
std::string_view without_port(std::string_view bytes, std::size_t& to_skip) {
  const std::size_t skipped = std::min(to_skip, bytes.size());
  to_skip -= skipped;
  return bytes.substr(skipped);
}

struct Forwarding {
  std::shared_ptr<ClusterLink> link;
  ForwardPlace place;
  ForwardReport report;
  int open = 0;
};

/// One connection, from its acceptance to its end on either side.
class Forwarded : public std::enable_shared_from_this<Forwarded> {
 public:
  Forwarded(std::shared_ptr<Forwarding> all, tcp::socket socket, int remote)
      : all_(std::move(all)), local_(std::move(socket)), remote_(remote) {
    ++all_->open;
  }
  ~Forwarded() { --all_->open; }

  void start() {
    start_on(all_->link->loop(), [self = shared_from_this()] { return self->run(self); });
  }

 private:
  asio::awaitable<void> run([[maybe_unused]] std::shared_ptr<Forwarded> self) {
    ChannelRequest request{.target = forward_target(all_->place, remote_),
                           .protocols = kChannelProtocolV4};
    auto opened = co_await ChannelSocket::open(all_->link, std::move(request), interrupt_);
    if (!opened) {
      all_->report.on_failure(opened.error());
      close();
      co_return;
    }
    socket_ = std::move(*opened);
    start_on(all_->link->loop(), [me = shared_from_this()] { return me->send(me); });
    co_await receive();
    if (!error_.empty()) {
      all_->report.on_failure(Error{Code::unavailable, with_invalid_utf8_replaced(error_), "", {}});
    }
    close();
  }

  asio::awaitable<void> receive() {
    std::size_t skip_data = kPortBytes;
    std::size_t skip_error = kPortBytes;
    for (;;) {
      const auto message = co_await socket_->read();
      if (!message || !*message) co_return;
      const ChannelMessage& part = **message;
      if (part.channel == error_channel) {
        const std::string_view text = without_port(part.bytes, skip_error);
        error_.append(text.substr(0, kErrorBytesMax - std::min(kErrorBytesMax, error_.size())));
        continue;
      }
      const std::string_view bytes = without_port(part.bytes, skip_data);
      error_code failed;
      co_await asio::async_write(local_, asio::buffer(bytes.data(), bytes.size()),
                                 asio::redirect_error(asio::use_awaitable, failed));
      if (failed) co_return;
    }
  }

  /// The protocol has no half-closed connections: an end on our side ends the whole.
  asio::awaitable<void> send([[maybe_unused]] std::shared_ptr<Forwarded> self) {
    std::array<char, kChunkBytes> chunk{};
    for (;;) {
      error_code failed;
      const std::size_t count = co_await local_.async_read_some(
          asio::buffer(chunk), asio::redirect_error(asio::use_awaitable, failed));
      if (failed) break;
      const Result<void> written =
          co_await socket_->write(data_channel, std::string(chunk.data(), count));
      if (!written) break;
    }
    close();
  }

  void close() {
    error_code ignored;
    local_.close(ignored);
    interrupt_.fire();
  }

  const std::shared_ptr<Forwarding> all_;
  tcp::socket local_;
  const int remote_;
  Interrupt interrupt_;
  std::unique_ptr<ChannelSocket> socket_;
  std::string error_;
};

asio::awaitable<void> accept_all(std::shared_ptr<Forwarding> all,
                                 std::shared_ptr<tcp::acceptor> acceptor, int remote) {
  asio::steady_timer pause(all->link->loop());
  for (;;) {
    error_code failed;
    tcp::socket socket =
        co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, failed));
    if (failed == asio::error::operation_aborted || !acceptor->is_open()) co_return;
    const bool may_be_taken = !failed && all->open < kConnectionsMax;
    if (may_be_taken) {
      std::make_shared<Forwarded>(all, std::move(socket), remote)->start();
      continue;
    }
    error_code ignored;
    if (!failed) {
      socket.close(ignored);
      all->report.on_failure(Error{
          Code::unavailable,
          std::to_string(kConnectionsMax) + " connections are open; one more was closed at once",
          "",
          {}});
    }
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Result<std::shared_ptr<tcp::acceptor>> listen(asio::io_context& loop, const std::string& address,
                                              int port) {
  const std::string where = address + ":" + std::to_string(port);
  error_code failed;
  const auto host = asio::ip::make_address(address, failed);
  if (failed) return Error{Code::invalid, "is no address of this machine", address, {}};
  auto acceptor = std::make_shared<tcp::acceptor>(loop);
  const tcp::endpoint endpoint(host, static_cast<unsigned short>(port));
  acceptor->open(endpoint.protocol(), failed);
  if (!failed) acceptor->set_option(tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor->bind(endpoint, failed);
  if (!failed) acceptor->listen(asio::socket_base::max_listen_connections, failed);
  if (failed) return Error{Code::invalid, "can't listen: " + failed.message(), where, {}};
  return acceptor;
}

}  // namespace

Result<ForwardedPort> parse_forwarded_port(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string_view all = text;
  const std::string_view local = all.substr(0, colon);
  const std::string_view remote = colon == std::string::npos ? all : all.substr(colon + 1);
  const auto to = port_in(remote, 1);
  const auto from = local.empty() ? std::optional<int>(0) : port_in(local, 0);
  if (to && from) return ForwardedPort{.local = *from, .remote = *to};
  return Error{
      Code::invalid,
      "is no pair of ports; it must be LOCAL:REMOTE, PORT or :REMOTE, each from 1 to 65535",
      text,
      {}};
}

Result<int> forward_ports(const std::shared_ptr<ClusterLink>& link, const ForwardPlace& place,
                          const std::vector<ForwardedPort>& ports, const ForwardReport& report) {
  auto all = std::make_shared<Forwarding>();
  all->link = link;
  all->place = place;
  all->report = report;
  std::vector<std::shared_ptr<tcp::acceptor>> acceptors;
  for (const ForwardedPort& port : ports) {
    auto acceptor = listen(link->loop(), place.address, port.local);
    if (!acceptor) return acceptor.error();
    acceptors.push_back(*acceptor);
    const int local = (*acceptor)->local_endpoint().port();
    report.on_listening(place.address + ":" + std::to_string(local), port.remote);
    start_on(link->loop(), [all, taken = *acceptor, remote = port.remote] {
      return accept_all(all, taken, remote);
    });
  }
  std::optional<int> ended_by;
  asio::signal_set signals(link->loop(), SIGINT, SIGTERM, SIGHUP);
  signals.async_wait([&ended_by](const error_code& stopped, int number) {
    if (!stopped) ended_by = number;
  });
  link->loop().restart();
  while (!ended_by && link->loop().run_one() > 0) {}
  error_code ignored;
  for (const auto& acceptor : acceptors) acceptor->close(ignored);
  return ended_by.value_or(SIGTERM);
}

}  // namespace tj
