// A stream of bytes to a server, whatever carries it: TCP, TLS over TCP, or TLS within the TLS of a
// proxy. Beast and Asio see one type (WireStream), so that what speaks HTTP and WebSocket is
// compiled once. One thread, that of the loop.
#pragma once
#include <utility>  // boost/asio/awaitable.hpp of 1.74 uses std::exchange without it

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/role.hpp>
#include <functional>
#include <memory>
#include <string>

#include "operator/kube/tls_identity.h"

namespace tj {

using Transferred = std::function<void(boost::system::error_code, std::size_t)>;

class Wire {
 public:
  virtual ~Wire() = default;
  virtual void read_some(boost::asio::mutable_buffer into, Transferred done) = 0;
  virtual void write_some(boost::asio::const_buffer from, Transferred done) = 0;
  /// What carries the bytes in the end.
  virtual boost::asio::ip::tcp::socket& socket() = 0;
};

/// What Asio calls an AsyncStream.
class WireStream {
 public:
  using lowest_layer_type = boost::asio::ip::tcp::socket;
  using next_layer_type = boost::asio::ip::tcp::socket;
  using executor_type = lowest_layer_type::executor_type;

  explicit WireStream(std::unique_ptr<Wire> wire) : wire_(std::move(wire)) {}

  executor_type get_executor() { return wire_->socket().get_executor(); }
  lowest_layer_type& lowest_layer() { return wire_->socket(); }
  const lowest_layer_type& lowest_layer() const { return wire_->socket(); }
  Wire& wire() { return *wire_; }
  std::unique_ptr<Wire> release() { return std::move(wire_); }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Signature>(
        [wire = wire_.get()](auto handler, boost::asio::mutable_buffer into) {
          wire->read_some(into, copyable(std::move(handler)));
        },
        token, first_of<boost::asio::mutable_buffer>(buffers));
  }
  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Signature>(
        [wire = wire_.get()](auto handler, boost::asio::const_buffer from) {
          wire->write_some(from, copyable(std::move(handler)));
        },
        token, first_of<boost::asio::const_buffer>(buffers));
  }

 private:
  using Signature = void(boost::system::error_code, std::size_t);

  template <typename Handler>
  static Transferred copyable(Handler handler) {
    return [shared = std::make_shared<Handler>(std::move(handler))](
               boost::system::error_code error, std::size_t count) { (*shared)(error, count); };
  }
  template <typename Buffer, typename Buffers>
  static Buffer first_of(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto each = boost::asio::buffer_sequence_begin(buffers); each != end; ++each) {
      const Buffer buffer(*each);
      if (buffer.size() > 0) return buffer;
    }
    return Buffer();
  }

  std::unique_ptr<Wire> wire_;
};

/// Beast ends a WebSocket with these: the connection is closed, and that is all.
template <typename Handler>
void async_teardown(boost::beast::role_type, WireStream& stream, Handler&& handler) {
  boost::system::error_code ignored;
  stream.lowest_layer().close(ignored);
  boost::asio::post(stream.get_executor(), [done = std::forward<Handler>(handler)]() mutable {
    done(boost::system::error_code());
  });
}
inline void teardown(boost::beast::role_type, WireStream& stream,
                     boost::system::error_code& error) {
  stream.lowest_layer().close(error);
}

inline void beast_close_socket(WireStream& stream) {
  boost::system::error_code ignored;
  stream.lowest_layer().close(ignored);
}

std::unique_ptr<Wire> tcp_wire(boost::asio::ip::tcp::socket socket);

/// TLS as a client over another wire, after its handshake. `identity` says who we are and whom we
/// trust; the server is asked for the name that its certificate must have.
boost::asio::awaitable<Result<std::unique_ptr<Wire>>> tls_wire(
    std::unique_ptr<Wire> carrier, std::shared_ptr<TlsIdentity> identity);

}  // namespace tj
