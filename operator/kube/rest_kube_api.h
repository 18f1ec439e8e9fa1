// A real Kubernetes API server behind the KubeApi seam, through cpprestsdk (in maintenance mode,
// which is why nothing of it is seen outside rest_kube_api.cc and http_thread.cc).
//
// All that touches the library runs on one thread of its own: the library's sockets, timers and
// cancellations are not safe against each other on several threads, and one is enough for the
// rate at which an API server creates pods.
#pragma once
#include <functional>
#include <memory>

#include "operator/kube/kube_api.h"
#include "operator/kube/kube_config.h"
#include "operator/kube/rest_options.h"

namespace tj {

class RestConnection;  // rest_connection.h

class RestKubeApi final : public KubeApi {
 public:
  /// Hands a function to the loop thread; called from the client's thread.
  using Post = std::function<void(std::function<void()>)>;

  /// Never fails: a config that can't be used fails each request, with its reason. Sets
  /// SSL_CERT_FILE and SSL_CERT_DIR of this process, so construct it before other threads read the
  /// environment.
  RestKubeApi(const KubeConfig& config, Post post, RestOptions options = {});
  /// On the loop thread. Cancels what is under way; no callback starts after it, and `post` is not
  /// called again.
  ~RestKubeApi() override;
  RestKubeApi(const RestKubeApi&) = delete;
  RestKubeApi& operator=(const RestKubeApi&) = delete;

  void send(Request request, Done done) override;
  /// The stream must be destroyed on the loop thread; it may outlive this object.
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

 private:
  std::shared_ptr<RestConnection> connection_;
};

}  // namespace tj
