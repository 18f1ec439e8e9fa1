#include "trainer/report/progress_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <set>
#include <thread>

#include "contract/names.h"

namespace tj::trainer {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr const char* kPlainText = "text/plain; charset=utf-8";
// https://prometheus.io/docs/instrumenting/exposition_formats/
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

struct Answer {
  http::status status = http::status::ok;
  std::string body;
  const char* content_type = kPlainText;
};

Answer answer_to(http::verb method, std::string path, const ProgressPages& pages) {
  path = path.substr(0, path.find('?'));
  if (method != http::verb::get && method != http::verb::head)
    return {http::status::method_not_allowed, "only GET and HEAD\n"};
  if (path == names::kProgressPath)
    return {http::status::ok, pages.progress() + "\n", "application/json"};
  if (path == "/metrics") return {http::status::ok, pages.metrics(), kMetricsText};
  return {http::status::not_found, "there are /progress and /metrics\n"};
}

/// One client: a request, an answer, the end.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Ended = std::function<void(const std::shared_ptr<Connection>&)>;
  Connection(tcp::socket socket, const ProgressPages& pages, Ended ended)
      : stream_(std::move(socket)), pages_(pages), ended_(std::move(ended)) {}

  void read() {
    parser_.header_limit(ProgressServer::kRequestBytesMax);
    parser_.body_limit(ProgressServer::kRequestBytesMax);
    stream_.expires_after(ProgressServer::kConnectionMax);
    http::async_read(
        stream_, buffer_, parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }

 private:
  void on_read(error_code error) {
    if (error) return ended_(shared_from_this());
    const auto& request = parser_.get();
    const Answer answer = answer_to(request.method(), std::string(request.target()), pages_);
    response_ = {answer.status, request.version()};
    response_.set(http::field::content_type, answer.content_type);
    response_.keep_alive(false);
    response_.content_length(answer.body.size());
    if (request.method() != http::verb::head) response_.body() = answer.body;
    http::async_write(stream_, response_,  // within what is left of the time
                      [self = shared_from_this()](error_code, std::size_t) { self->close(); });
  }
  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    ended_(shared_from_this());
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{ProgressServer::kRequestBytesMax};
  http::request_parser<http::string_body> parser_;
  http::response<http::string_body> response_;
  const ProgressPages& pages_;
  Ended ended_;
};

/// Signals are for the threads that know what to do with them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

class ProgressServer::Impl {
 public:
  Impl(ProgressPages pages, std::function<void()> on_tick)
      : pages_(std::move(pages)), on_tick_(std::move(on_tick)) {}

  Result<void> listen(int port, bool on_all_addresses) {
    const auto address = on_all_addresses ? boost::asio::ip::address(boost::asio::ip::address_v6())
                                          : boost::asio::ip::address_v4::loopback();
    auto error = open({address, static_cast<unsigned short>(port)});
    if (error && on_all_addresses)  // a machine without IPv6
      error = open({tcp::v4(), static_cast<unsigned short>(port)});
    if (!error) return {};
    error_code ignored;
    acceptor_.close(ignored);
    return Error{.code = Code::unavailable,
                 .message = error.message(),
                 .subject = "port " + std::to_string(port),
                 .retry_after = {}};
  }

  void start() {
    if (acceptor_.is_open()) accept();
    tick_after(kTick);
    const BlockedSignals blocked;  // the thread inherits them
    thread_ = std::jthread([this] { loop_.run(); });
  }

  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  error_code open(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.protocol() == tcp::v6())
      acceptor_.set_option(boost::asio::ip::v6_only(false), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kConnectionsMax, error);
    return error;
  }

  /// Beyond the bound the next client waits in the listener's backlog. After an error (no
  /// descriptor is left, most likely) the next tick tries again.
  void accept() {
    if (is_accepting_ || connections_.size() >= kConnectionsMax) return;
    is_accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      is_accepting_ = false;
      if (error) return;
      const auto connection = std::make_shared<Connection>(
          std::move(socket), pages_, [this](const std::shared_ptr<Connection>& ended) {
            connections_.erase(ended);
            accept();
          });
      connections_.insert(connection);
      connection->read();
      accept();
    });
  }

  void tick_after(std::chrono::seconds pause) {
    timer_.expires_after(pause);
    timer_.async_wait([this](error_code error) {
      if (error) return;
      on_tick_();
      if (acceptor_.is_open()) accept();
      tick_after(kTick);
    });
  }

  ProgressPages pages_;
  std::function<void()> on_tick_;
  boost::asio::io_context loop_{1};
  tcp::acceptor acceptor_{loop_};
  boost::asio::steady_timer timer_{loop_};
  std::set<std::shared_ptr<Connection>> connections_;
  bool is_accepting_ = false;
  std::jthread thread_;
};

ProgressServer::ProgressServer(ProgressPages pages, std::function<void()> on_tick)
    : impl_(std::make_unique<Impl>(std::move(pages), std::move(on_tick))) {}
ProgressServer::~ProgressServer() { stop(); }
Result<void> ProgressServer::listen(int port, bool on_all_addresses) {
  return impl_->listen(port, on_all_addresses);
}
void ProgressServer::start() { impl_->start(); }
void ProgressServer::stop() { impl_->stop(); }

}  // namespace tj::trainer
