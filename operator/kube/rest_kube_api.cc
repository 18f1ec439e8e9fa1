#include "operator/kube/rest_kube_api.h"

#include "operator/kube/http_thread.h"
#include "operator/kube/rest_connection.h"

namespace tj {

RestKubeApi::RestKubeApi(const KubeConfig& config, Post post, RestOptions options) {
  keep_system_authorities_out();
  http_thread();
  connection_ = std::make_shared<RestConnection>(config, std::move(post), std::move(options));
}

RestKubeApi::~RestKubeApi() { connection_->close(); }

void RestKubeApi::send(Request request, Done done) {
  start_call(connection_, std::move(request), std::move(done));
}

std::unique_ptr<WatchStream> RestKubeApi::watch(WatchRequest request, WatchHandler handler) {
  return start_stream(connection_, request, std::move(handler));
}

}  // namespace tj
