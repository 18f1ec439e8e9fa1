#include "operator/loop/health_server.h"

namespace tj {
namespace {

constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kUnavailable = 503;
// https://prometheus.io/docs/instrumenting/exposition_formats/
constexpr const char* kMetricsText = "text/plain; version=0.0.4; charset=utf-8";

HttpReply answer_to(const HttpQuestion& question, const HealthPages& pages) {
  if (question.method != "GET" && question.method != "HEAD")
    return {.status = kMethodNotAllowed, .body = "only GET and HEAD\n"};
  const std::string path = question.target.substr(0, question.target.find('?'));
  if (path == "/healthz") return {.body = "ok\n"};
  if (path == "/metrics" && pages.metrics)
    return {.body = pages.metrics(), .content_type = kMetricsText};
  if (path == "/readyz") {
    const std::string reason = pages.not_ready_reason();
    if (reason.empty()) return {.body = "ok\n"};
    return {.status = kUnavailable, .body = "not ready: " + reason + "\n"};
  }
  const std::string others = pages.metrics ? " and /metrics" : "";
  return {.status = kNotFound, .body = "there are /healthz, /readyz" + others + "\n"};
}

}  // namespace

Result<std::unique_ptr<HealthServer>> HealthServer::listen(boost::asio::io_context& loop,
                                                           const std::string& address,
                                                           HealthPages pages) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return endpoint.error();
  auto server = HttpServer::listen(loop, *endpoint,
                                   {.connections_max = kConnectionsMax,
                                    .idle_max = kIdleMax,
                                    .request_bytes_max = kRequestBytesMax},
                                   [pages = std::move(pages)](const HttpQuestion& question) {
                                     return answer_to(question, pages);
                                   });
  if (!server) {
    Error error = server.error();
    error.subject = "cannot listen at " + address;  // as it was given
    return error;
  }
  return std::unique_ptr<HealthServer>(new HealthServer(*std::move(server)));
}

}  // namespace tj
