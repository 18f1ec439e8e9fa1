#include "cli/cluster/cluster_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>

namespace tj {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Clock = std::chrono::steady_clock;

/// A server or a balancer between us ends idle connections by itself; most wait longer.
constexpr std::chrono::seconds kIdleMax{50};
constexpr int kHttp11 = 11;

/// Nothing may come on an idle connection: what is there is its end.
bool stands(Connection& connection) {
  char byte = 0;
  const int descriptor = connection.stream.lowest_layer().native_handle();
  const ssize_t count = ::recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool is_quiet = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return is_quiet && Clock::now() - connection.idle_since < kIdleMax;
}

}  // namespace

ClusterLink::ClusterLink(asio::io_context& loop, KubeConfig config, EnvText env,
                         RestOptions options)
    : loop_(loop), options_(std::move(options)), server_(config.server), credentials_(config) {
  while (server_.ends_with('/')) server_.pop_back();
  const Result<void> found = find_route(config, env);
  if (!found) unusable_ = Error{Code::unavailable, describe(found.error()), server_, {}};
}

Result<void> ClusterLink::find_route(const KubeConfig& config, const EnvText& env) {
  Result<ServerUrl> server = parse_server_url(config.server);
  if (!server) return server.error();
  route_.server = *server;
  Result<std::optional<ServerUrl>> proxy = choose_proxy(config, *server, env);
  if (!proxy) return proxy.error();
  route_.proxy = *proxy;
  if (!route_.proxy || route_.proxy->scheme != "https") return {};
  // As with kubectl the cluster's authorities hold for the proxy; our certificate is the server's
  // business.
  KubeConfig of_proxy{.server = "https://" + host_and_port(*route_.proxy),
                      .ca_pem = config.ca_pem,
                      .ca_source = config.ca_source};
  of_proxy.insecure_skip_tls_verify = config.insecure_skip_tls_verify;
  Result<std::shared_ptr<TlsIdentity>> identity = TlsIdentity::load(of_proxy);
  if (!identity) return identity.error();
  route_.proxy_identity = *identity;
  return {};
}

Result<Authority> ClusterLink::authority() {
  if (unusable_) return *unusable_;
  return credentials_.current();
}

std::string ClusterLink::subject(const HttpCall& call) const {
  return call.method + (" " + server_) + call.target;
}

HttpRequest ClusterLink::request(const HttpCall& call, const std::string& body,
                                 const Authority& authority) const {
  HttpRequest request(http::string_to_verb(call.method), target(call.target), kHttp11);
  request.set(http::field::host, host());
  request.set(http::field::user_agent, options_.user_agent);
  request.set(http::field::accept, "application/json, */*");
  for (const Header& header : authority.headers) request.insert(header.name, header.value);
  if (body.empty()) return request;
  request.set(http::field::content_type, call.content_type);
  request.body() = body;
  request.prepare_payload();
  return request;
}

std::unique_ptr<Connection> ClusterLink::take_idle(const Authority& authority) {
  while (!idle_.empty()) {
    std::unique_ptr<Connection> last = std::move(idle_.back());
    idle_.pop_back();
    if (last->identity == authority.identity && stands(*last)) return last;
  }
  return nullptr;
}

void ClusterLink::give_back(std::unique_ptr<Connection> connection) {
  if (closed_ || idle_.size() >= std::size_t{kCallsMax}) return;
  connection->idle_since = Clock::now();
  idle_.push_back(std::move(connection));
}

asio::awaitable<Result<std::unique_ptr<Connection>>> ClusterLink::connect(
    const Authority& authority, Interrupt& interrupt) {
  Result<std::unique_ptr<Wire>> wire = co_await dial(route_, authority.identity, interrupt);
  if (!wire) co_return wire.error();
  auto connection = std::make_unique<Connection>(std::move(*wire));
  connection->identity = authority.identity;
  close_with(interrupt, *connection);
  co_return connection;
}

void ClusterLink::deliver(std::function<void()> function) {
  if (closed_) return;
  asio::post(loop_, [self = shared_from_this(), function = std::move(function)] {
    if (!self->closed_) function();
  });
}

void ClusterLink::close() {
  closed_ = true;
  idle_.clear();
  const auto under_way = under_way_;  // what ends leaves the set
  for (Interrupt* interrupt : under_way) {
    if (under_way_.contains(interrupt)) interrupt->fire();
  }
}

void start_on(asio::io_context& loop, std::function<asio::awaitable<void>()> coroutine) {
  asio::post(loop, [&loop, coroutine = std::move(coroutine)] {
    asio::co_spawn(loop, coroutine, [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
    });
  });
}

void close_with(Interrupt& interrupt, Connection& connection) {
  interrupt.set([&connection] {
    boost::system::error_code ignored;
    connection.stream.lowest_layer().close(ignored);
  });
}

}  // namespace tj
