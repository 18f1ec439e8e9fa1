// An API server on loopback that answers requests, and speaks WebSocket where it is asked for an
// upgrade: what a test does in it, it does step by step, on a thread for each connection.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/kube/test_ca.h"

namespace tj {

/// One WebSocket, seen from the server.
class FakeChannels {
 public:
  using Tls = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  FakeChannels(Tls& tls, const Request& request);
  /// Takes the upgrade with this subprotocol.
  void accept(const std::string& protocol);
  void refuse(int status, const std::string& body);
  std::string target() const { return std::string(request_.target()); }
  std::string header(const std::string& name) const { return std::string(request_[name]); }

  void write(int channel, const std::string& bytes);
  /// The next message with its channel as first byte; none once the client has left.
  std::optional<std::string> read();
  void close();
  /// Leaves without a word.
  void drop();

 private:
  const Request& request_;
  Tls& tls_;
  boost::beast::websocket::stream<Tls&> socket_;
};

class FakeKubelet {
 public:
  using Upgrade = std::function<void(FakeChannels& channels)>;
  using Answer = std::function<std::string(const std::string& target)>;  // 200; "" is a 404

  FakeKubelet(const Issued& identity, Upgrade on_upgrade, Answer answer = {});
  ~FakeKubelet();
  std::string url() const;

 private:
  void serve(boost::asio::ip::tcp::socket socket);

  Upgrade on_upgrade_;
  Answer answer_;
  boost::asio::io_context loop_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::mutex mutex_;  // guards sockets_ and threads_
  std::list<int> sockets_;
  std::list<std::jthread> threads_;
  std::jthread accepting_;
};

}  // namespace tj
