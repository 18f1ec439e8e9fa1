// The operator's one seam to the world: requests to a Kubernetes API server, and its watches.
// RestKubeApi (kube/rest_kube_api.h) speaks to a real server, MemoryApi (local/memory_api.h) is one
// in memory.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "contract/result.h"

namespace tj {

/// Nodes belong to no namespace; of the others each object is in one. A self-subject review is a
/// question, who we are, that the server answers and keeps nothing of.
enum class Resource {
  training_jobs,
  pods,
  services,
  events,
  leases,
  nodes,
  network_policies,
  config_maps,
  self_subject_reviews
};
/// Those of which there are objects.
inline constexpr std::array kResources = {
    Resource::training_jobs, Resource::pods,  Resource::services,         Resource::events,
    Resource::leases,        Resource::nodes, Resource::network_policies, Resource::config_maps};
/// "trainingjobs", "pods", ...: the path segment and the metrics label.
const char* to_string(Resource resource);
/// "v1", "kubebrain.io/v1", ...: of the objects, and the path's beginning.
const char* api_version_of(Resource resource);

enum class Verb { get, list, create, replace, patch, patch_status, remove };
const char* to_string(Verb verb);  // "get", "list", "create", "update", "patch", "delete"

inline constexpr std::chrono::milliseconds kRequestDeadline{15'000};
inline constexpr int kListPageMax = 500;

struct Request {
  Verb verb = Verb::get;
  Resource resource = Resource::pods;
  std::string ns;    // empty: all namespaces (list), or a resource that has none
  std::string name;  // empty for list and create
  /// JSON; create: the object, replace: the object with the resourceVersion it was read at,
  /// patch and patch_status: a merge patch, of all but the status or of it; remove: DeleteOptions.
  std::string body;
  std::string label_selector;                             // list
  std::string field_selector;                             // list
  int limit = kListPageMax;                               // list: objects in a page
  std::string continue_token;                             // list: the next page
  std::chrono::milliseconds deadline = kRequestDeadline;  // of the whole request
};

/// The log of one container (the subresource `log` of a pod), as the kubelet keeps it.
struct LogOptions {
  std::string container;  // empty: the pod's only one
  bool follow = false;    // the stream ends with the container
  bool previous = false;  // of the container before its last restart
  bool timestamps = false;
  std::string since_time;  // RFC 3339; empty: from the beginning
  std::optional<std::int64_t> tail_lines;
};

struct WatchRequest {
  Resource resource = Resource::pods;
  std::string ns;  // empty: all namespaces
  /// Set: the stream's lines are those of the log of the pod `name`, and nothing below is asked for
  /// but the timeout.
  std::optional<LogOptions> log;
  std::string name;
  std::string label_selector;
  std::string resource_version;  // from a list or a bookmark; bookmarks are always asked for
  std::chrono::seconds timeout{
      300};  // the server ends the stream then; a stream silent for longer is dead
};

/// Called zero or more times with one line (a watch event as JSON, or a line of a log), then once
/// with why the stream ended. An orderly end (the server's timeout) is a Result without error.
struct WatchHandler {
  std::function<void(std::string line)> on_line;
  std::function<void(Result<void> end)> on_end;
};

/// Its destruction cancels the stream: no callback starts after the destructor has returned.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
};

/// Any thread may call; callbacks come on the executor that the implementation was given (the loop
/// thread), never from inside the call itself. A response is the JSON body of a 2xx answer; any
/// other answer is an Error by its HTTP status: 404 not_found, 409 conflict, 410 gone, 400/422
/// invalid, 401/403 forbidden, 429/5xx unavailable (with Retry-After).
class KubeApi {
 public:
  using Done = std::function<void(Result<std::string> body)>;
  virtual ~KubeApi() = default;
  virtual void send(Request request, Done done) = 0;
  virtual std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) = 0;
};

}  // namespace tj
