#include "operator/loop/http_server.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cctype>
#include <set>

#include "contract/launch_env.h"

namespace tj {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kAcceptPause{1};

Error bad_address(const std::string& address) {
  return {Code::invalid,
          "\"" + address + "\" must be ADDRESS:PORT, as in 0.0.0.0:8080",
          "cannot listen",
          {}};
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& character : lower)
    character = static_cast<char>(std::tolower(static_cast<unsigned char>(character)));
  return lower;
}

HttpQuestion question_of(const http::request<http::string_body>& request) {
  HttpQuestion question{.method = std::string(request.method_string()),
                        .target = std::string(request.target()),
                        .headers = {},
                        .body = request.body()};
  for (const auto& field : request) {
    question.headers.emplace_back(lower_case(std::string(field.name_string())),
                                  std::string(field.value()));
  }
  return question;
}

/// Status and headers, of a body of either kind.
void begin_response(http::response_header<>& response, const HttpReply& reply) {
  response.result(static_cast<unsigned>(reply.status));
  response.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.headers) response.insert(name, value);
}

}  // namespace

std::vector<std::string_view> HttpQuestion::values_of(std::string_view lower_case_name) const {
  std::vector<std::string_view> values;
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) values.emplace_back(value);
  }
  return values;
}

class HttpConnection;

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, HttpServerOptions options, Answer answer)
      : acceptor_(loop), pause_(loop), options_(options), answer_(std::move(answer)) {}

  error_code open(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(options_.connections_max, error);
    return error;
  }
  int port() const { return acceptor_.local_endpoint().port(); }
  const HttpServerOptions& options() const { return options_; }
  HttpReply answer(const HttpQuestion& question) const { return answer_(question); }
  void accept();
  void stop();
  void ended(const std::shared_ptr<HttpConnection>& connection);

 private:
  void accept_after_pause();
  void make_room();

  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  HttpServerOptions options_;
  Answer answer_;
  std::set<std::shared_ptr<HttpConnection>> connections_;
  bool accepting_ = false;
  bool stopped_ = false;
};

/// One client: request, answer, and again while it keeps the connection.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Ended = std::function<void(const std::shared_ptr<HttpConnection>&)>;
  HttpConnection(tcp::socket socket, HttpServerOptions options, HttpServer::Answer answer,
                 Ended ended)
      : socket_stream_(std::move(socket)),
        options_(options),
        buffer_(options.request_bytes_max),
        answer_(std::move(answer)),
        ended_(std::move(ended)) {}

  void read() {
    idle_since_ = std::chrono::steady_clock::now();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(options_.request_bytes_max));
    parser_->body_limit(options_.request_bytes_max);
    socket_stream_.expires_after(options_.idle_max);
    http::async_read(
        socket_stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code error, std::size_t) { self->on_read(error); });
  }
  void close() {
    error_code ignored;
    socket_stream_.socket().close(ignored);
    body_.reset();
  }
  std::chrono::steady_clock::time_point idle_since() const { return idle_since_; }

 private:
  void on_read(error_code error) {
    if (error || !socket_stream_.socket().is_open()) return end();
    HttpReply reply = answer_(question_of(parser_->get()));
    if (!reply.later) return write(std::move(reply));
    reply.later([weak = weak_from_this()](HttpReply known) {
      const auto self = weak.lock();
      if (self && self->socket_stream_.socket().is_open()) self->write(std::move(known));
    });
  }
  void write(HttpReply reply) {
    const auto& request = parser_->get();
    const bool is_head = request.method() == http::verb::head;
    if (reply.stream && !is_head) return begin_stream(std::move(reply));
    response_ = {};
    response_.version(request.version());
    begin_response(response_, reply);
    response_.keep_alive(request.keep_alive());
    response_.content_length(reply.body.size());
    if (!is_head) response_.body() = std::move(reply.body);
    socket_stream_.expires_after(options_.idle_max);
    http::async_write(
        socket_stream_, response_,
        [self = shared_from_this()](error_code failed, std::size_t) { self->on_written(failed); });
  }
  void on_written(error_code error) {
    if (!error && response_.keep_alive()) return read();
    end();
  }

  /// The connection ends with such a body, so that its end needs no other sign in HTTP/1.0.
  void begin_stream(HttpReply reply) {
    body_ = std::move(reply.stream);
    stream_head_ = {};
    stream_head_.version(parser_->get().version());
    begin_response(stream_head_, reply);
    stream_head_.keep_alive(false);
    stream_head_.chunked(stream_head_.version() == 11);
    serializer_.emplace(stream_head_);
    socket_stream_.expires_after(options_.idle_max);
    http::async_write_header(socket_stream_, *serializer_,
                             [self = shared_from_this()](error_code error, std::size_t) {
                               if (error) return self->end();
                               self->watch_for_end();
                               self->ask_for_chunk();
                             });
  }
  /// A client that reads a stream says nothing more: what comes from it is its end.
  void watch_for_end() {
    socket_stream_.expires_never();
    socket_stream_.socket().async_wait(tcp::socket::wait_read,
                                       [self = shared_from_this()](error_code) { self->end(); });
  }
  void ask_for_chunk() {
    if (!body_) return;
    idle_since_ = std::chrono::steady_clock::now();
    body_->next([weak = weak_from_this()](std::optional<std::string> chunk) {
      if (const auto self = weak.lock()) self->write_chunk(std::move(chunk));
    });
  }
  void write_chunk(std::optional<std::string> chunk) {
    if (!socket_stream_.socket().is_open()) return;
    is_last_chunk_ = !chunk;
    chunk_ = std::move(chunk).value_or("");
    const bool is_chunked = stream_head_.chunked();
    socket_stream_.expires_after(options_.idle_max);
    const auto written = [self = shared_from_this()](error_code error, std::size_t) {
      self->socket_stream_.expires_never();
      if (error || self->is_last_chunk_) return self->end();
      self->ask_for_chunk();
    };
    if (is_last_chunk_ && is_chunked)
      boost::asio::async_write(socket_stream_, http::make_chunk_last(), written);
    else if (is_chunked)
      boost::asio::async_write(socket_stream_, http::make_chunk(boost::asio::buffer(chunk_)),
                               written);
    else
      boost::asio::async_write(socket_stream_, boost::asio::buffer(chunk_), written);
  }
  void end() {
    const auto self = shared_from_this();
    close();
    ended_(self);
  }

  boost::beast::tcp_stream socket_stream_;
  HttpServerOptions options_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  http::response<http::empty_body> stream_head_;
  std::optional<http::response_serializer<http::empty_body>> serializer_;
  std::unique_ptr<HttpStream> body_;
  std::string chunk_;
  bool is_last_chunk_ = false;
  HttpServer::Answer answer_;
  Ended ended_;
  std::chrono::steady_clock::time_point idle_since_{};
};

void HttpServer::Impl::make_room() {
  if (connections_.size() < static_cast<std::size_t>(options_.connections_max)) return;
  const auto idlest = std::ranges::min_element(
      connections_, {}, [](const auto& connection) { return connection->idle_since(); });
  (*idlest)->close();
  connections_.erase(idlest);
}

void HttpServer::Impl::accept() {
  if (stopped_ || accepting_) return;
  accepting_ = true;
  acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket socket) {
    self->accepting_ = false;
    if (self->stopped_) return;
    if (error) return self->accept_after_pause();
    const auto connection = std::make_shared<HttpConnection>(
        std::move(socket), self->options_, self->answer_,
        [weak = std::weak_ptr(self)](const std::shared_ptr<HttpConnection>& ended) {
          if (const auto server = weak.lock()) server->ended(ended);
        });
    self->make_room();
    self->connections_.insert(connection);
    connection->read();
    self->accept();
  });
}

/// Out of file descriptors, most likely: they will not come back in this turn of the loop.
void HttpServer::Impl::accept_after_pause() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (!error && self) self->accept();
  });
}

void HttpServer::Impl::ended(const std::shared_ptr<HttpConnection>& connection) {
  connections_.erase(connection);
}

void HttpServer::Impl::stop() {
  stopped_ = true;
  pause_.cancel();
  error_code ignored;
  acceptor_.close(ignored);
  for (const auto& connection : connections_) connection->close();
  connections_.clear();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(boost::asio::io_context& loop,
                                                       const tcp::endpoint& endpoint,
                                                       HttpServerOptions options, Answer answer) {
  auto impl = std::make_shared<Impl>(loop, options, std::move(answer));
  if (const error_code error = impl->open(endpoint)) {
    const std::string host = endpoint.address().to_string();
    return Error{Code::unavailable,
                 error.message(),
                 "cannot listen at " + (endpoint.address().is_v6() ? "[" + host + "]" : host) +
                     ":" + std::to_string(endpoint.port()),
                 {}};
  }
  impl->accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() { stop(); }
int HttpServer::port() const { return impl_->port(); }
void HttpServer::stop() { impl_->stop(); }

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

}  // namespace tj
