// Asks the server what the events of a pod say that waits in silence: a volume that can't be
// mounted, a Secret that is not there. Events are news and never needed: seldom asked for, a few
// at a time, and without them the job is only said to wait.
#pragma once
#include <functional>
#include <optional>

#include "operator/kube/kube_api.h"
#include "operator/plan/plan.h"

namespace tj {

class PodNewsReader {
 public:
  static constexpr int kAsksInFlightMax = 4;
  static constexpr int kEventsMax = 50;  // of one pod; the server merges those that repeat

  /// Absent: there is nothing to tell.
  using Done = std::function<void(std::optional<PodNews> news)>;

  explicit PodNewsReader(KubeApi& api) : api_(api) {}
  /// Nothing happens when too many are asked for already: whoever still waits will ask again. An
  /// answer that is an error, for want of a permission say, is no news.
  void ask(const Pod& pod, Done done);

 private:
  KubeApi& api_;
  int in_flight_ = 0;
};

/// The newest warning in a list of events about the pod, as its answer.
std::optional<PodNews> newest_warning(const std::string& event_list, const std::string& pod_uid);

}  // namespace tj
