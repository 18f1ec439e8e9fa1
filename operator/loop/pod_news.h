// Asks the server what the events of a pod say that waits in silence: a volume that can't be
// mounted, a Secret that is not there. Events are news and never needed: seldom asked for, a few
// at a time, and without them the job is only said to wait.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/loop/alarm.h"
#include "operator/plan/plan.h"

namespace tj {

class PodNewsReader {
 public:
  /// For one job.
  static constexpr std::chrono::seconds kAskInterval{30};
  static constexpr int kAsksInFlightMax = 4;
  static constexpr int kEventsMax = 50;  // of one pod; the server merges those that repeat

  /// `wake`: of this job there is something else to tell than before.
  PodNewsReader(KubeApi& api, Alarm& alarm, std::function<void(const ObjectKey& job)> wake)
      : api_(api), alarm_(alarm), wake_(std::move(wake)) {}
  /// Nothing happens when the job has just asked, or too many are asked for already: whoever still
  /// waits will ask again. An answer that is an error, for want of a permission say, is no news.
  void ask(const ObjectMeta& job, const ObjectMeta& pod);
  /// The last answer; absent: there is nothing to tell.
  std::optional<PodNews> of(const ObjectMeta& job) const;
  /// The job is gone.
  void forget(const ObjectKey& job) { jobs_.erase(job); }

 private:
  struct Job {
    std::string uid;
    SteadyTime next_ask{};
    std::optional<PodNews> news;
  };
  void take(const ObjectMeta& job, std::optional<PodNews> news);

  KubeApi& api_;
  Alarm& alarm_;
  std::function<void(const ObjectKey& job)> wake_;
  int in_flight_ = 0;
  std::map<ObjectKey, Job> jobs_;  // that have asked
};

/// The newest warning in a list of events about the pod, as its answer.
std::optional<PodNews> newest_warning(const std::string& event_list, const std::string& pod_uid);

}  // namespace tj
