// What all requests of one client share: the way to the server, who we are, and connections that
// are kept for the next request. One thread, that of the loop. Private to cli/cluster.
#pragma once
#include <utility>  // boost/asio/awaitable.hpp of 1.74 uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/cluster/credentials.h"
#include "cli/cluster/dialer.h"
#include "cli/cluster/proxy_choice.h"
#include "operator/kube/rest_options.h"
#include "operator/kube/rest_request.h"

namespace tj {

struct Connection {
  explicit Connection(std::unique_ptr<Wire> wire) : stream(std::move(wire)) {}
  WireStream stream;
  boost::beast::flat_buffer buffer;       // what has come beyond the last answer
  std::shared_ptr<TlsIdentity> identity;  // whose it is
  std::chrono::steady_clock::time_point idle_since{};
};

/// A request that is under way.
using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;

class ClusterLink : public std::enable_shared_from_this<ClusterLink> {
 public:
  /// Requests at one time, each on a connection of its own. As many are kept: with fewer, requests
  /// that end together would close what those behind them open anew.
  static constexpr int kCallsMax = 16;

  /// Never fails: what can't be used fails each request.
  ClusterLink(boost::asio::io_context& loop, KubeConfig config, EnvText env, RestOptions options);

  boost::asio::io_context& loop() { return loop_; }
  const RestOptions& options() const { return options_; }

  Result<Authority> authority();
  /// The server said 401 to it: true when there is something else to try.
  bool renew(const Authority& refused) { return credentials_.renew(refused); }

  /// "GET https://...": what an error is about.
  std::string subject(const HttpCall& call) const;
  HttpRequest request(const HttpCall& call, const std::string& body,
                      const Authority& authority) const;
  std::string host() const { return host_and_port(route_.server); }
  std::string target(const std::string& target) const { return route_.server.path + target; }

  /// One that is idle and still stands; null when there is none.
  std::unique_ptr<Connection> take_idle(const Authority& authority);
  void give_back(std::unique_ptr<Connection> connection);
  boost::asio::awaitable<Result<std::unique_ptr<Connection>>> connect(const Authority& authority,
                                                                      Interrupt& interrupt);

  /// Runs `function` later, unless the client is closed by then.
  void deliver(std::function<void()> function);
  void began(Interrupt* interrupt) { under_way_.insert(interrupt); }
  void ended(Interrupt* interrupt) { under_way_.erase(interrupt); }
  /// Nothing is delivered any more, what is under way ends.
  void close();
  bool closed() const { return closed_; }

 private:
  Result<void> find_route(const KubeConfig& config, const EnvText& env);

  boost::asio::io_context& loop_;
  const RestOptions options_;
  std::string server_;
  Credentials credentials_;
  Route route_;
  std::optional<Error> unusable_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::set<Interrupt*> under_way_;
  bool closed_ = false;
};

/// Starts a coroutine on the loop, not from inside this call; what it throws leaves the loop's run.
void start_on(boost::asio::io_context& loop,
              std::function<boost::asio::awaitable<void>()> coroutine);
/// Has `interrupt` close the connection.
void close_with(Interrupt& interrupt, Connection& connection);

}  // namespace tj
