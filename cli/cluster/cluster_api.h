// A real API server behind the KubeApi seam for a person's tools, on Boost.Beast (docs/adr/0026):
// proxies, IPv6, log-in plug-ins. Everything happens on the thread of the loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <memory>

#include "cli/cluster/proxy_choice.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/kube_config.h"
#include "operator/kube/rest_options.h"

namespace tj {

class ClusterLink;  // cluster_link.h

class ClusterApi final : public KubeApi {
 public:
  /// Never fails: a config that can't be used fails each request, with its reason. `loop` must
  /// outlive this object and its streams; `env` is asked for proxies, here.
  ClusterApi(boost::asio::io_context& loop, const KubeConfig& config, const EnvText& env,
             RestOptions options = {});
  /// Cancels what is under way; no callback starts after it.
  ~ClusterApi() override;
  ClusterApi(const ClusterApi&) = delete;
  ClusterApi& operator=(const ClusterApi&) = delete;

  /// Not more than a few requests are under way; the others wait for their turn, and their
  /// deadlines begin with it.
  void send(Request request, Done done) override;
  /// Lines are handed over as they are read, and none is read before the last one is taken: a slow
  /// handler slows the server down. The stream may outlive this object.
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override;

  /// For what speaks WebSocket over the same way (channels.h).
  const std::shared_ptr<ClusterLink>& link() const { return link_; }

 private:
  struct Waiting;

  std::shared_ptr<ClusterLink> link_;
  std::shared_ptr<Waiting> waiting_;
};

}  // namespace tj
