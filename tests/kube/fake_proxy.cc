#include "tests/kube/fake_proxy.h"

#include <array>
#include <memory>

#include "cli/cluster/base64.h"

namespace tj {
namespace asio = boost::asio;
using asio::use_awaitable;

namespace {

template <typename From, typename To>
asio::awaitable<void> relay(From& from, To& to) {
  std::array<char, 4096> part{};
  try {
    for (;;) {
      const std::size_t count = co_await from.async_read_some(asio::buffer(part), use_awaitable);
      co_await asio::async_write(to, asio::buffer(part.data(), count), use_awaitable);
    }
  } catch (const boost::system::system_error&) {}
  boost::system::error_code ignored;
  from.lowest_layer().close(ignored);
  to.lowest_layer().close(ignored);
}

}  // namespace

FakeProxy::FakeProxy(FakeProxyRules rules)
    : rules_(std::move(rules)),
      acceptor_(loop_, Tcp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) {
  if (rules_.identity) {
    tls_.use_certificate_chain(asio::buffer(rules_.identity->certificate_pem));
    tls_.use_private_key(asio::buffer(rules_.identity->key_pem), asio::ssl::context::pem);
  }
  asio::co_spawn(loop_, accept(), asio::detached);
  thread_ = std::jthread([this] { loop_.run(); });
}

FakeProxy::~FakeProxy() { loop_.stop(); }

std::string FakeProxy::url(const std::string& scheme, const std::string& login) const {
  return scheme + "://" + (login.empty() ? "" : login + "@") +
         "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
}

std::vector<std::string> FakeProxy::asked() const {
  const std::lock_guard lock(mutex_);
  return asked_;
}

void FakeProxy::note(const std::string& what) {
  const std::lock_guard lock(mutex_);
  asked_.push_back(what);
}

asio::awaitable<void> FakeProxy::accept() {
  for (;;) {
    auto socket = std::make_shared<Tcp::socket>(co_await acceptor_.async_accept(use_awaitable));
    const auto talk = [this, socket]() -> asio::awaitable<void> {
      if (!rules_.identity) {
        co_await serve(*socket);
        co_return;
      }
      asio::ssl::stream<Tcp::socket&> secured(*socket, tls_);
      co_await secured.async_handshake(asio::ssl::stream_base::server, use_awaitable);
      co_await serve(secured);
    };
    asio::co_spawn(loop_, talk, asio::detached);
  }
}

template <typename Stream>
asio::awaitable<std::string> FakeProxy::take(Stream& stream, std::size_t count) {
  std::string bytes(count, '\0');
  co_await asio::async_read(stream, asio::buffer(bytes), use_awaitable);
  co_return bytes;
}

template <typename Stream>
asio::awaitable<void> FakeProxy::serve(Stream& stream) {
  try {
    const std::string first = co_await take(stream, 1);
    bool open = false;
    if (first[0] == 5) {
      open = co_await socks(stream);
    } else {
      open = co_await http(stream, first);
    }
    if (!open) co_return;
    Tcp::socket server(loop_);
    const auto port = static_cast<unsigned short>(rules_.target_port);
    co_await server.async_connect({asio::ip::make_address("127.0.0.1"), port}, use_awaitable);
    // The other way runs beside this one, and both end together.
    asio::co_spawn(loop_, relay(server, stream), asio::detached);
    co_await relay(stream, server);
    asio::steady_timer other(loop_, std::chrono::milliseconds(50));
    co_await other.async_wait(use_awaitable);
  } catch (const boost::system::system_error&) {}
}

template <typename Stream>
asio::awaitable<bool> FakeProxy::http(Stream& stream, std::string head) {
  while (!head.ends_with("\r\n\r\n")) head += co_await take(stream, 1);
  note(head.substr(0, head.find(" HTTP")));
  const bool knows =
      rules_.wanted_login.empty() ||
      head.find("Proxy-Authorization: Basic " + base64(rules_.wanted_login)) != std::string::npos;
  const std::string answer = knows ? "HTTP/1.1 200 Connection established\r\n\r\n"
                                   : "HTTP/1.1 407 Proxy Authentication Required\r\n"
                                     "Content-Length: 0\r\n\r\n";
  co_await asio::async_write(stream, asio::buffer(answer), use_awaitable);
  co_return knows;
}

template <typename Stream>
asio::awaitable<bool> FakeProxy::socks(Stream& stream) {
  const std::string count = co_await take(stream, 1);
  const std::string offered = co_await take(stream, static_cast<unsigned char>(count[0]));
  const char wanted = rules_.wanted_login.empty() ? '\0' : '\2';
  const bool has_it = offered.find(wanted) != std::string::npos;
  const std::string chosen = {'\5', has_it ? wanted : '\xff'};
  co_await asio::async_write(stream, asio::buffer(chosen), use_awaitable);
  if (!has_it) co_return false;
  if (wanted == '\2') {
    const std::string user_head = co_await take(stream, 2);
    std::string login = co_await take(stream, static_cast<unsigned char>(user_head[1]));
    const std::string length = co_await take(stream, 1);
    login += ":";
    login += co_await take(stream, static_cast<unsigned char>(length[0]));
    const bool knows = login == rules_.wanted_login;
    const std::string verdict = {'\1', knows ? '\0' : '\1'};
    co_await asio::async_write(stream, asio::buffer(verdict), use_awaitable);
    if (!knows) co_return false;
  }
  const std::string head = co_await take(stream, 4);
  std::string host;
  if (head[3] == 3) {
    const std::string length = co_await take(stream, 1);
    host = co_await take(stream, static_cast<unsigned char>(length[0]));
  } else {
    const std::string raw = co_await take(stream, 4);
    for (const char part : raw)
      host += (host.empty() ? "" : ".") + std::to_string(static_cast<unsigned char>(part));
  }
  const std::string port = co_await take(stream, 2);
  note("SOCKS " + host + ":" +
       std::to_string(static_cast<unsigned char>(port[0]) * 256 +
                      static_cast<unsigned char>(port[1])));
  const std::string answer("\5\0\0\1\0\0\0\0\0\0", 10);
  co_await asio::async_write(stream, asio::buffer(answer), use_awaitable);
  co_return true;
}

}  // namespace tj
