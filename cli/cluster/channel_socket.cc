#include "cli/cluster/channel_socket.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/buffers_to_string.hpp>

namespace tj {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;

constexpr std::size_t kMessageBytesMax = 16 * 1024 * 1024;
constexpr std::size_t kWriteBytes = 64 * 1024;
constexpr char kCloseChannel = static_cast<char>(255);  // of v5

WireStream taken(Connection& connection) { return WireStream(connection.stream.release()); }

}  // namespace

ChannelSocket::ChannelSocket(std::unique_ptr<Connection> connection)
    : stream_(taken(*connection)), turn_(stream_.get_executor()) {
  stream_.binary(true);
  // The server (golang.org/x/net/websocket) takes each frame for a message.
  stream_.auto_fragment(false);
  stream_.write_buffer_bytes(kWriteBytes);
  stream_.read_message_max(kMessageBytesMax);
}

asio::awaitable<Result<void>> ChannelSocket::shake_hands(const ClusterLink& link,
                                                         const ChannelRequest& request,
                                                         const Authority& authority) {
  const std::string user_agent = link.options().user_agent;
  stream_.set_option(websocket::stream_base::decorator(
      [headers = authority.headers, user_agent,
       protocols = request.protocols](websocket::request_type& upgrade) {
        upgrade.set(http::field::user_agent, user_agent);
        upgrade.set(http::field::sec_websocket_protocol, protocols);
        for (const Header& header : headers) upgrade.insert(header.name, header.value);
      }));
  error_code failed;
  websocket::response_type answer;
  const std::string host = link.host();
  const std::string target = link.target(request.target);
  co_await stream_.async_handshake(answer, host, target,
                                   asio::redirect_error(asio::use_awaitable, failed));
  const HttpCall call{.target = request.target.substr(0, request.target.find('?'))};
  const std::string subject = link.subject(call);
  if (failed == websocket::error::upgrade_declined) {
    const int status = static_cast<int>(answer.result_int());
    const Result<std::string> read_as =
        read_answer({.status = status, .body = answer.body(), .retry_after = {}}, subject);
    co_return read_as ? Error{Code::unavailable,
                              "HTTP " + std::to_string(status) + " instead of a WebSocket",
                              subject,
                              {}}
                      : read_as.error();
  }
  if (failed) co_return Error{Code::unavailable, broken_text(failed), subject, {}};
  protocol_ = std::string(answer[http::field::sec_websocket_protocol]);
  co_return Result<void>();
}

asio::awaitable<Result<std::unique_ptr<ChannelSocket>>> ChannelSocket::open(
    std::shared_ptr<ClusterLink> link, ChannelRequest request, Interrupt& interrupt) {
  for (int attempt = 0;; ++attempt) {
    const Result<Authority> authority = link->authority();
    if (!authority) co_return authority.error();
    Result<std::unique_ptr<Connection>> connection = co_await link->connect(*authority, interrupt);
    if (!connection) {
      Error why = connection.error();
      const HttpCall call{.target = request.target.substr(0, request.target.find('?'))};
      why.subject = link->subject(call);
      co_return why;
    }
    auto socket = std::make_unique<ChannelSocket>(std::move(*connection));
    interrupt.set([raw = socket.get()] {
      error_code ignored;
      raw->stream_.next_layer().lowest_layer().close(ignored);
    });
    const Result<void> open = co_await socket->shake_hands(*link, request, *authority);
    if (open) co_return socket;
    interrupt.set(nullptr);
    const bool is_refused = open.error().message.find("HTTP 401") != std::string::npos;
    const bool again = is_refused && attempt == 0 && link->renew(*authority);
    if (!again) co_return open.error();
  }
}

asio::awaitable<Result<std::optional<ChannelMessage>>> ChannelSocket::read() {
  for (;;) {
    error_code failed;
    buffer_.consume(buffer_.size());
    co_await stream_.async_read(buffer_, asio::redirect_error(asio::use_awaitable, failed));
    if (failed == websocket::error::closed) co_return std::optional<ChannelMessage>();
    if (failed) co_return Error{Code::unavailable, broken_text(failed), "", {}};
    const std::string bytes = boost::beast::buffers_to_string(buffer_.data());
    if (bytes.empty()) continue;
    ChannelMessage message{.channel = static_cast<unsigned char>(bytes[0]),
                           .bytes = bytes.substr(1)};
    co_return std::optional<ChannelMessage>(std::move(message));
  }
}

asio::awaitable<Result<void>> ChannelSocket::write(int channel, std::string bytes) {
  while (is_writing_) {
    error_code woken;
    turn_.expires_at(asio::steady_timer::time_point::max());
    co_await turn_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  is_writing_ = true;
  bytes.insert(bytes.begin(), static_cast<char>(channel));
  error_code failed;
  co_await stream_.async_write(asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, failed));
  is_writing_ = false;
  turn_.cancel();
  if (failed) co_return Error{Code::unavailable, broken_text(failed), "", {}};
  co_return Result<void>();
}

asio::awaitable<Result<void>> ChannelSocket::end_of(int channel) {
  if (protocol_ != kChannelProtocolV5) co_return Result<void>();
  std::string which(1, static_cast<char>(channel));
  const Result<void> written = co_await write(static_cast<unsigned char>(kCloseChannel), which);
  co_return written;
}

}  // namespace tj
