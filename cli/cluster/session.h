// A person's session with an API server: which one, which namespace, and blocking calls over the
// KubeApi seam. One loop, one thread: a call runs the loop until its answer is there; what follows
// a watch or a log runs the loop itself.
#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/result.h"
#include "operator/kube/kube_api.h"

namespace CLI {
class App;
}

namespace tj {

class ClusterLink;  // cluster_link.h

/// Empty: as the kubeconfig says, which is found as kubectl finds it.
struct SessionOptions {
  std::string kubeconfig;
  std::string context;
  std::string ns;
};

/// --kubeconfig, --context, -n/--namespace. `options` must live as long as the program's options.
void add_session_flags(CLI::App& command, SessionOptions& options);

class Session {
 public:
  using Post = std::function<void(std::function<void()>)>;
  using MakeApi = std::function<std::unique_ptr<KubeApi>(Post post)>;

  /// Reads the kubeconfig; the server is not asked yet. Errors name file and field.
  static Result<std::unique_ptr<Session>> open(const SessionOptions& options);
  /// Over another API: a local run's, or a test's.
  Session(const MakeApi& make_api, std::string ns);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& ns() const { return ns_; }
  boost::asio::io_context& loop() { return loop_; }
  KubeApi& api() { return *api_; }
  /// The way to the server for what is no request (channel_socket.h); null over another API.
  const std::shared_ptr<ClusterLink>& link() const { return link_; }

  /// The answer's object.
  Result<nlohmann::json> call(Request request);
  /// All pages of a list; `request.verb` is ignored.
  Result<std::vector<nlohmann::json>> list(Request request);

 private:
  boost::asio::io_context loop_;
  std::string ns_;
  std::unique_ptr<KubeApi> api_;
  std::shared_ptr<ClusterLink> link_;
};

}  // namespace tj
