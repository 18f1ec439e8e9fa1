// A proxy on loopback that knows CONNECT of HTTP and SOCKS 5, and writes down whither it was asked
// to go.
#pragma once
#include <utility>  // boost/asio/awaitable.hpp of 1.74 uses std::exchange without it

#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/kube/test_ca.h"

namespace tj {

struct FakeProxyRules {
  std::string wanted_login;             // "user:password"; "" for anybody
  int target_port = 0;                  // where all connections lead
  std::optional<Issued> identity = {};  // it speaks TLS itself
};

class FakeProxy {
 public:
  explicit FakeProxy(FakeProxyRules rules);
  ~FakeProxy();
  /// "SCHEME://[LOGIN@]127.0.0.1:PORT"
  std::string url(const std::string& scheme, const std::string& login = "") const;
  /// "CONNECT host:port" or "SOCKS host:port", in order.
  std::vector<std::string> asked() const;

 private:
  using Tcp = boost::asio::ip::tcp;
  boost::asio::awaitable<void> accept();
  template <typename Stream>
  boost::asio::awaitable<void> serve(Stream& stream);
  template <typename Stream>
  boost::asio::awaitable<bool> http(Stream& stream, std::string head);
  template <typename Stream>
  boost::asio::awaitable<bool> socks(Stream& stream);
  template <typename Stream>
  boost::asio::awaitable<std::string> take(Stream& stream, std::size_t count);
  void note(const std::string& what);

  FakeProxyRules rules_;
  boost::asio::io_context loop_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  Tcp::acceptor acceptor_;
  mutable std::mutex mutex_;  // guards asked_
  std::vector<std::string> asked_;
  std::jthread thread_;
};

}  // namespace tj
