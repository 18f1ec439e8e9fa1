#include "operator/loop/health_server.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <set>

#include "contract/launch_env.h"

namespace tj {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kAcceptPause{1};
constexpr const char* kPlainText = "text/plain; charset=utf-8";
// https://prometheus.io/docs/instrumenting/exposition_formats/
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

Error bad_address(const std::string& address) {
  return {Code::invalid,
          "\"" + address + "\" must be ADDRESS:PORT, as in 0.0.0.0:8080",
          "cannot listen",
          {}};
}

Result<tcp::endpoint> parse_endpoint(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return bad_address(address);
  std::string host = address.substr(0, colon);
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  error_code error;
  const auto ip = boost::asio::ip::make_address(host.empty() ? "0.0.0.0" : host, error);
  const auto port = parse_int("port", address.substr(colon + 1), 0, 65535);
  if (error || !port) return bad_address(address);
  return tcp::endpoint(ip, static_cast<unsigned short>(*port));
}

struct Answer {
  http::status status = http::status::ok;
  std::string body;
  const char* content_type = kPlainText;
};

Answer answer_to(http::verb method, std::string path, const HealthPages& pages) {
  path = path.substr(0, path.find('?'));
  if (method != http::verb::get && method != http::verb::head) {
    return {http::status::method_not_allowed, "only GET and HEAD\n"};
  }
  if (path == "/healthz") return {http::status::ok, "ok\n"};
  if (path == "/metrics" && pages.metrics) return {http::status::ok, pages.metrics(), kMetricsText};
  if (path == "/readyz") {
    const std::string reason = pages.not_ready_reason();
    if (reason.empty()) return {http::status::ok, "ok\n"};
    return {http::status::service_unavailable, "not ready: " + reason + "\n"};
  }
  const std::string others = pages.metrics ? " and /metrics" : "";
  return {http::status::not_found, "there are /healthz, /readyz" + others + "\n"};
}

}  // namespace

class HealthConnection;

class HealthServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, HealthPages pages)
      : acceptor_(loop), pause_(loop), pages_(std::move(pages)) {}

  error_code open(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(kConnectionsMax, error);
    return error;
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  const HealthPages& pages() const { return pages_; }
  void accept();
  void stop();
  void ended(const std::shared_ptr<HealthConnection>& connection);

 private:
  void accept_after_pause();
  void make_room();

  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  HealthPages pages_;
  std::set<std::shared_ptr<HealthConnection>> connections_;
  bool accepting_ = false;
  bool stopped_ = false;
};

/// One client: request, answer, and again while it keeps the connection.
class HealthConnection : public std::enable_shared_from_this<HealthConnection> {
 public:
  using Ended = std::function<void(const std::shared_ptr<HealthConnection>&)>;
  HealthConnection(tcp::socket socket, const HealthPages& pages, Ended ended)
      : stream_(std::move(socket)), pages_(pages), ended_(std::move(ended)) {}

  void read() {
    idle_since_ = std::chrono::steady_clock::now();
    parser_.emplace();
    parser_->header_limit(HealthServer::kRequestBytesMax);
    parser_->body_limit(HealthServer::kRequestBytesMax);
    stream_.expires_after(HealthServer::kIdleMax);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }
  void close() {
    error_code ignored;
    stream_.socket().close(ignored);
  }
  std::chrono::steady_clock::time_point idle_since() const { return idle_since_; }

 private:
  void on_read(error_code error) {
    if (error || !stream_.socket().is_open()) return ended_(shared_from_this());
    const auto& request = parser_->get();
    const Answer answer = answer_to(request.method(), std::string(request.target()), pages_);
    response_ = {answer.status, request.version()};
    response_.set(http::field::content_type, answer.content_type);
    response_.keep_alive(request.keep_alive());
    response_.content_length(answer.body.size());
    if (request.method() != http::verb::head) response_.body() = answer.body;
    stream_.expires_after(HealthServer::kIdleMax);
    http::async_write(
        stream_, response_,
        [self = shared_from_this()](error_code failed, std::size_t) { self->on_written(failed); });
  }
  void on_written(error_code error) {
    if (!error && response_.keep_alive()) return read();
    close();
    ended_(shared_from_this());
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{HealthServer::kRequestBytesMax};
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  const HealthPages& pages_;
  Ended ended_;
  std::chrono::steady_clock::time_point idle_since_{};
};

void HealthServer::Impl::make_room() {
  if (connections_.size() < kConnectionsMax) return;
  const auto idlest = std::ranges::min_element(
      connections_, {}, [](const auto& connection) { return connection->idle_since(); });
  (*idlest)->close();
  connections_.erase(idlest);
}

void HealthServer::Impl::accept() {
  if (stopped_ || accepting_) return;
  accepting_ = true;
  acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
    self->accepting_ = false;
    if (self->stopped_) return;
    if (error) return self->accept_after_pause();
    const auto connection = std::make_shared<HealthConnection>(
        std::move(socket), self->pages_,
        [weak = std::weak_ptr(self)](const std::shared_ptr<HealthConnection>& ended) {
          if (const auto server = weak.lock()) server->ended(ended);
        });
    self->make_room();
    self->connections_.insert(connection);
    connection->read();
    self->accept();
  });
}

/// Out of file descriptors, most likely: they will not come back in this turn of the loop.
void HealthServer::Impl::accept_after_pause() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (!error && self) self->accept();
  });
}

void HealthServer::Impl::ended(const std::shared_ptr<HealthConnection>& connection) {
  connections_.erase(connection);
}

void HealthServer::Impl::stop() {
  stopped_ = true;
  pause_.cancel();
  error_code ignored;
  acceptor_.close(ignored);
  for (const auto& connection : connections_) connection->close();
  connections_.clear();
}

Result<std::unique_ptr<HealthServer>> HealthServer::listen(boost::asio::io_context& loop,
                                                           const std::string& address,
                                                           HealthPages pages) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error();
  auto impl = std::make_shared<Impl>(loop, std::move(pages));
  if (const error_code error = impl->open(*endpoint)) {
    return Error{Code::unavailable, error.message(), "cannot listen at " + address, {}};
  }
  impl->accept();
  return std::unique_ptr<HealthServer>(new HealthServer(std::move(impl)));
}

HealthServer::~HealthServer() { stop(); }
int HealthServer::port() const { return impl_->port(); }
void HealthServer::stop() { impl_->stop(); }

}  // namespace tj
