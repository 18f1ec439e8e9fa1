// What the controller knows of the cluster: four caches, fed by the watches and by the answers to
// its own writes, and which pods belong to which job. A change is answered with the jobs it
// touches.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/types.h"
#include "operator/kube/cache.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/watcher.h"
#include "operator/loop/packed_pod.h"

namespace tj {

class View {
 public:
  explicit View(std::function<TimePoint()> now) : now_(std::move(now)) {}

  const Cache<TrainingJob>& jobs() const { return jobs_; }
  const Cache<PackedPod>& pods() const { return pods_; }
  const Cache<Service>& services() const { return services_; }
  const Cache<Node>& nodes() const { return nodes_; }
  /// False: we watch what it is one of, and have not seen it.
  bool knows(Resource resource, const ObjectKey& key) const;

  /// Children that carry the job's name in their label, whoever owns them.
  std::vector<Pod> pods_of(const ObjectKey& job) const;
  /// Those of its workers that have departed (operator/plan/plan.h), by what the stream said of
  /// their deletion.
  std::vector<Pod> departed_of(const ObjectKey& job) const;
  void forget_departed(const ObjectKey& job) { departed_.erase(job); }
  /// Those that `pods` are on, as far as nodes are known.
  std::vector<Node> nodes_of(const std::vector<Pod>& pods) const;

  /// Takes in what a watch has said; returns the jobs that it touches. An object that can't be read
  /// is logged and left out. Of a node only its silence touches jobs, not its heartbeat.
  std::vector<ObjectKey> apply(Resource resource, const WatchDelta& delta);

  /// Takes in the answer to our own write or read: the object's JSON. True if it was news.
  bool wrote(Resource resource, const std::string& body);
  /// The server says that this very pod is no more.
  void forget_pod(const ObjectKey& key, const std::string& uid);
  /// Nodes are not watched any more: what is known of them grows old.
  void forget_nodes();

 private:
  void index(const Pod& pod);
  void unindex(const Pod& pod);
  void remember(const Pod& deleted);
  std::vector<ObjectKey> apply_nodes(const WatchDelta& delta);
  Result<Node> read_node(const nlohmann::json& object) const;

  std::function<TimePoint()> now_;
  Cache<TrainingJob> jobs_;
  Cache<PackedPod> pods_;
  Cache<Service> services_;
  Cache<Node> nodes_;
  std::map<std::string, TimePoint> silent_nodes_;                   // as their jobs have been told
  std::map<ObjectKey, std::vector<std::string>> pod_names_;         // by job, in order
  std::map<ObjectKey, std::map<std::string, PackedPod>> departed_;  // by job and name
};

/// Absent (and logged) when `text` is not a JSON object.
std::optional<nlohmann::json> parse_object(const std::string& text);

}  // namespace tj
