// What the controller knows of the cluster: three caches, fed by the watches and by the answers to
// its own writes, and which pods belong to which job. A change is answered with the jobs it
// touches.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "operator/api/types.h"
#include "operator/kube/cache.h"
#include "operator/kube/kube_api.h"
#include "operator/kube/watcher.h"

namespace tj {

class View {
 public:
  const Cache<TrainingJob>& jobs() const { return jobs_; }
  const Cache<Pod>& pods() const { return pods_; }
  const Cache<Service>& services() const { return services_; }

  /// Children that carry the job's name in their label, whoever owns them.
  std::vector<Pod> pods_of(const ObjectKey& job) const;

  /// Takes in what a watch has said; returns the jobs that it touches. An object that can't be read
  /// is logged and left out.
  std::vector<ObjectKey> apply(Resource resource, const WatchDelta& delta);

  /// Takes in the answer to our own write or read: the object's JSON. True if it was news.
  bool wrote(Resource resource, const std::string& body);
  /// The server says that this very pod is no more.
  void forget_pod(const ObjectKey& key, const std::string& uid);

 private:
  void index(const Pod& pod);
  void unindex(const Pod& pod);

  Cache<TrainingJob> jobs_;
  Cache<Pod> pods_;
  Cache<Service> services_;
  std::map<ObjectKey, std::set<std::string>> pod_names_;  // by job
};

/// Absent (and logged) when `text` is not a JSON object.
std::optional<nlohmann::json> parse_object(const std::string& text);

}  // namespace tj
