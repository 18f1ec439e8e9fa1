// A TLS server on loopback that answers as a test tells it, badly where the test wants that.
#pragma once
#include <utility>  // boost/asio/awaitable.hpp of 1.74 uses std::exchange without it

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/kube/test_ca.h"

namespace tj {

/// What becomes of a connection after its answer.
enum class After { keep_alive, close, hang };

struct Reply {
  std::vector<std::string> pieces;       // written one by one
  std::chrono::milliseconds between{0};  // pieces
  After after = After::keep_alive;
};

/// A whole answer with its length.
Reply reply(int status, const std::string& body, const std::string& more_headers = "");
/// The head of a chunked answer, and one chunk of it; "" is the last.
std::string chunked_head();
std::string chunk(const std::string& data);

class FaultServer {
 public:
  using Handler = std::function<Reply(const std::string& request)>;

  FaultServer(const Issued& identity, Handler handler, const std::string& address = "127.0.0.1");
  ~FaultServer();
  std::string url() const { return "https://" + host_ + ":" + std::to_string(port_); }
  int port() const { return port_; }
  /// Heads and bodies of the requests so far.
  std::vector<std::string> requests() const;
  int connections() const { return connections_; }

 private:
  using Socket = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;
  boost::asio::awaitable<void> accept();
  boost::asio::awaitable<void> serve(std::shared_ptr<Socket> socket);
  boost::asio::awaitable<std::string> read_request(Socket& socket, std::string& buffer);

  Handler handler_;
  boost::asio::io_context loop_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  boost::asio::ip::tcp::acceptor acceptor_;
  std::string host_;  // as URLs write it
  int port_ = 0;
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;  // guards requests_
  std::vector<std::string> requests_;
  std::jthread thread_;
};

}  // namespace tj
