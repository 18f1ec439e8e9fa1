#include "cli/cluster/wire.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tj {
namespace {

namespace asio = boost::asio;

class TcpWire final : public Wire {
 public:
  explicit TcpWire(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}
  void read_some(asio::mutable_buffer into, Transferred done) override {
    socket_.async_read_some(into, std::move(done));
  }
  void write_some(asio::const_buffer from, Transferred done) override {
    socket_.async_write_some(from, std::move(done));
  }
  asio::ip::tcp::socket& socket() override { return socket_; }

 private:
  asio::ip::tcp::socket socket_;
};

class TlsWire final : public Wire {
 public:
  TlsWire(std::unique_ptr<Wire> carrier, std::shared_ptr<TlsIdentity> identity)
      : identity_(std::move(identity)),
        context_(asio::ssl::context::tls_client),
        stream_(WireStream(std::move(carrier)), prepared(context_, *identity_)) {}

  bool ask_for(const std::string& name) {
    boost::system::error_code not_an_address;
    asio::ip::make_address(name, not_an_address);
    if (!not_an_address) return true;  // RFC 6066, section 3: an address is no server name
    return SSL_set_tlsext_host_name(stream_.native_handle(), name.c_str()) == 1;
  }
  asio::ssl::stream<WireStream>& stream() { return stream_; }
  void read_some(asio::mutable_buffer into, Transferred done) override {
    stream_.async_read_some(into, std::move(done));
  }
  void write_some(asio::const_buffer from, Transferred done) override {
    stream_.async_write_some(from, std::move(done));
  }
  asio::ip::tcp::socket& socket() override { return stream_.next_layer().lowest_layer(); }

 private:
  static asio::ssl::context& prepared(asio::ssl::context& context, TlsIdentity& identity) {
    SSL_CTX_set_verify(context.native_handle(), SSL_VERIFY_PEER, nullptr);
    identity.apply(context.native_handle());
    return context;
  }

  std::shared_ptr<TlsIdentity> identity_;  // of the context's callback
  asio::ssl::context context_;
  asio::ssl::stream<WireStream> stream_;
};

Error handshake_failure(const boost::system::error_code& failed, const std::string& refusal) {
  const char* reason = ERR_reason_error_string(static_cast<unsigned long>(failed.value()));
  const bool is_openssls = failed.category() == asio::error::get_ssl_category();
  if (!is_openssls || reason == nullptr)
    reason = "the server ended it; perhaps it does not speak TLS";
  return Error{
      Code::unavailable,
      "TLS: " + (refusal.empty() ? std::string("the handshake failed: ") + reason : refusal),
      "",
      {}};
}

}  // namespace

std::unique_ptr<Wire> tcp_wire(asio::ip::tcp::socket socket) {
  return std::make_unique<TcpWire>(std::move(socket));
}

asio::awaitable<Result<std::unique_ptr<Wire>>> tls_wire(std::unique_ptr<Wire> carrier,
                                                        std::shared_ptr<TlsIdentity> identity) {
  auto tls = std::make_unique<TlsWire>(std::move(carrier), identity);
  if (!tls->ask_for(identity->host()))
    co_return Error{Code::invalid, "is no name of a server", identity->host(), {}};
  boost::system::error_code failed;
  co_await tls->stream().async_handshake(asio::ssl::stream_base::client,
                                         asio::redirect_error(asio::use_awaitable, failed));
  if (failed) co_return handshake_failure(failed, identity->take_refusal());
  co_return std::unique_ptr<Wire>(std::move(tls));
}

}  // namespace tj
