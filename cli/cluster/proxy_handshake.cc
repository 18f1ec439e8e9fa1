#include "cli/cluster/proxy_handshake.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <vector>

#include "cli/cluster/base64.h"
#include "contract/utf8.h"

namespace tj {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Bytes = std::vector<unsigned char>;

constexpr std::size_t kNameBytesMax = 255;  // a length of SOCKS is one byte
constexpr unsigned char kSocksVersion = 5;
constexpr unsigned char kSocksIpv4 = 1;
constexpr unsigned char kSocksName = 3;
constexpr unsigned char kSocksIpv6 = 4;
constexpr unsigned char kNoLogin = 0;
constexpr unsigned char kPasswordLogin = 2;

Error refused(const std::string& message) { return Error{Code::unavailable, message, "", {}}; }

http::request<http::empty_body> connect_request(const Route& route) {
  const std::string target = host_and_port(route.server);
  http::request<http::empty_body> request(http::verb::connect, target, 11);
  request.set(http::field::host, target);
  request.set(http::field::user_agent, "tj");
  if (!route.proxy->user.empty()) {
    request.set(http::field::proxy_authorization,
                "Basic " + base64(route.proxy->user + ":" + route.proxy->password));
  }
  return request;
}

Bytes bytes_of(const std::string& text) { return Bytes(text.begin(), text.end()); }

/// A length of one byte, then the text.
void append_counted(Bytes& bytes, const std::string& text) {
  bytes.push_back(static_cast<unsigned char>(text.size()));
  const Bytes more = bytes_of(text);
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// An address of IPv4 or IPv6, or a name.
void append_address(Bytes& bytes, const std::string& host) {
  error_code is_name;
  const auto address = asio::ip::make_address(host, is_name);
  if (is_name) {
    bytes.push_back(kSocksName);
    return append_counted(bytes, host);
  }
  const auto append = [&bytes](const auto& raw) {
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  bytes.push_back(address.is_v4() ? kSocksIpv4 : kSocksIpv6);
  address.is_v4() ? append(address.to_v4().to_bytes()) : append(address.to_v6().to_bytes());
}

/// RFC 1928, section 6.
const char* socks_reply(unsigned char code) {
  switch (code) {
    case 1: return "general failure";
    case 2: return "not allowed by its rules";
    case 3: return "network unreachable";
    case 4: return "host unreachable";
    case 5: return "connection refused";
    case 6: return "TTL expired";
    case 7: return "command not supported";
    case 8: return "address type not supported";
    default: return "unknown answer";
  }
}

/// Writes `said` and reads exactly `expected` bytes.
struct Exchange {
  Bytes said;
  std::size_t expected = 0;
};
asio::awaitable<Result<Bytes>> exchange(WireStream& stream, Exchange turn) {
  error_code failed;
  if (!turn.said.empty()) {
    co_await asio::async_write(stream, asio::buffer(turn.said),
                               asio::redirect_error(asio::use_awaitable, failed));
  }
  Bytes answer(turn.expected);
  if (!failed && turn.expected > 0) {
    co_await asio::async_read(stream, asio::buffer(answer),
                              asio::redirect_error(asio::use_awaitable, failed));
  }
  if (failed) co_return refused(broken_text(failed));
  co_return answer;
}

asio::awaitable<Result<void>> socks_login(WireStream& stream, const ServerUrl& proxy) {
  const unsigned char wanted = proxy.user.empty() ? kNoLogin : kPasswordLogin;
  Exchange greeting{.said = {kSocksVersion, 1, wanted}, .expected = 2};
  const auto chosen = co_await exchange(stream, std::move(greeting));
  if (!chosen) co_return chosen.error();
  if ((*chosen)[0] != kSocksVersion) co_return refused("it does not speak SOCKS 5");
  if ((*chosen)[1] != wanted) {
    co_return refused(proxy.user.empty() ? "it wants a user and a password"
                                         : "it takes no user and password");
  }
  if (wanted == kNoLogin) co_return Result<void>();
  Exchange login{.said = {1}, .expected = 2};
  append_counted(login.said, proxy.user);
  append_counted(login.said, proxy.password);
  const auto answer = co_await exchange(stream, std::move(login));
  if (!answer) co_return answer.error();
  if ((*answer)[1] != 0) co_return refused("it does not accept the user and the password");
  co_return Result<void>();
}

asio::awaitable<Result<void>> socks_connect(WireStream& stream, const ServerUrl& server) {
  Exchange request{.said = {kSocksVersion, 1, 0}, .expected = 4};  // connect
  append_address(request.said, server.host);
  request.said.push_back(static_cast<unsigned char>(server.port >> 8));
  request.said.push_back(static_cast<unsigned char>(server.port & 0xff));
  const auto head = co_await exchange(stream, std::move(request));
  if (!head) co_return head.error();
  if ((*head)[1] != 0) {
    const std::string why = std::string("it can't reach the server: ") + socks_reply((*head)[1]);
    co_return refused(why);
  }
  std::size_t rest = 4 + 2;  // an IPv4 address and a port
  if ((*head)[3] == kSocksIpv6) rest = 16 + 2;
  if ((*head)[3] == kSocksName) {
    Exchange length{.said = {}, .expected = 1};
    const auto read = co_await exchange(stream, std::move(length));
    if (!read) co_return read.error();
    rest = (*read)[0] + std::size_t{2};
  }
  Exchange bound{.said = {}, .expected = rest};
  const auto address = co_await exchange(stream, std::move(bound));
  if (!address) co_return address.error();
  co_return Result<void>();
}

}  // namespace

asio::awaitable<Result<std::unique_ptr<Wire>>> http_tunnel(std::unique_ptr<Wire> wire,
                                                           const Route& route) {
  WireStream stream(std::move(wire));
  const auto request = connect_request(route);
  error_code failed;
  http::request_serializer<http::empty_body> serializer(request);
  co_await http::async_write(stream, serializer, asio::redirect_error(asio::use_awaitable, failed));
  boost::beast::flat_buffer buffer;
  http::response_parser<http::empty_body> parser;
  parser.skip(true);  // what follows is the server's
  if (!failed) {
    co_await http::async_read_header(stream, buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, failed));
  }
  if (failed) co_return refused(broken_text(failed));
  const int status = static_cast<int>(parser.get().result_int());
  if (status != 200) {
    const std::string reason(parser.get().reason());
    const std::string why = "it answers HTTP " + std::to_string(status) + " " +
                            with_invalid_utf8_replaced(reason) +
                            (status == 407 ? "; it wants a user and a password in its URL" : "");
    co_return refused(why);
  }
  co_return stream.release();
}

asio::awaitable<Result<std::unique_ptr<Wire>>> socks_tunnel(std::unique_ptr<Wire> wire,
                                                            const Route& route) {
  const bool fits = route.server.host.size() <= kNameBytesMax &&
                    route.proxy->user.size() <= kNameBytesMax &&
                    route.proxy->password.size() <= kNameBytesMax;
  if (!fits) co_return refused("a name or a password is longer than 255 bytes");
  WireStream stream(std::move(wire));
  const Result<void> known = co_await socks_login(stream, *route.proxy);
  if (!known) co_return known.error();
  const Result<void> connected = co_await socks_connect(stream, route.server);
  if (!connected) co_return connected.error();
  co_return stream.release();
}

}  // namespace tj
