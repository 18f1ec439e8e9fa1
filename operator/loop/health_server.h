// The operator's window for probes and Prometheus: /healthz, /readyz and /metrics over HTTP/1.1 on
// the loop's own thread, so that /healthz stops answering when the loop is stuck.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "contract/result.h"
#include "operator/loop/http_server.h"

namespace tj {

struct HealthPages {
  std::function<std::string()> not_ready_reason;  // empty: ready
  std::function<std::string()> metrics;           // the text exposition format; absent: not shown
};

class HealthServer {
 public:
  /// Beyond it, who has been idle longest is hung up on: a probe never waits for others to leave.
  static constexpr int kConnectionsMax = 32;
  static constexpr std::chrono::seconds kIdleMax{30};  // for a request to come, an answer to go
  static constexpr std::size_t kRequestBytesMax = 8 * 1024;

  /// Listens at `address` ("0.0.0.0:8080", "[::]:8080"; port 0 takes a free one). Fails with the
  /// address and the cause.
  static Result<std::unique_ptr<HealthServer>> listen(boost::asio::io_context& loop,
                                                      const std::string& address,
                                                      HealthPages pages);
  int port() const { return server_->port(); }
  /// Closes the listener and each connection.
  void stop() { server_->stop(); }

 private:
  explicit HealthServer(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}
  std::unique_ptr<HttpServer> server_;
};

}  // namespace tj
