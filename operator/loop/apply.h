// Carries out a plan's actions, idempotently: a name that is taken by our own object of this
// attempt is success, one that is taken by anybody else is never adopted and never deleted.
// Deletions are bound to the uid. The answers go into the View.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/loop/view.h"
#include "operator/plan/plan.h"

namespace tj {

/// How a list of actions ended; the first thing that went wrong decides.
struct ApplyOutcome {
  bool complete = true;                      // every action is done
  std::optional<std::string> create_error;   // the server refused, in its words
  Refusal refusal = Refusal::denied;         // of what kind create_error is
  std::chrono::milliseconds retry_after{0};  // the server's wish
  std::string trouble;                       // any other reason, for the log
  std::optional<Resource> stale;             // this cache missed an object
};

class Applier {
 public:
  using Done = std::function<void(ApplyOutcome)>;

  Applier(KubeApi& api, View& view, int requests_in_flight_max)
      : api_(api), view_(view), in_flight_max_(static_cast<std::size_t>(requests_in_flight_max)) {}

  /// The Service first, then the pods with a slow start. Deletions in `actions` are not touched.
  void create(const TrainingJob& job, const std::vector<Action>& actions, Done done);
  /// The deletions in `actions`, in parallel.
  void remove(const TrainingJob& job, const std::vector<Action>& actions, Done done);

 private:
  struct Child {
    Resource resource = Resource::pods;
    ObjectKey key;
    std::string job_uid;
    int attempt = -1;  // of a pod
    std::string body;
  };
  using Verdict = std::function<void(ApplyOutcome)>;
  void create_pods(const TrainingJob& job, std::vector<CreatePod> pods, Done done);
  void create_child(Child child, Verdict verdict);
  void inspect_holder(const Child& child, const Verdict& verdict);
  ApplyOutcome judge_holder(const Child& child, const std::string& body);
  void remove_pod(const ObjectKey& key, const std::string& uid, const Verdict& verdict);

  KubeApi& api_;
  View& view_;
  std::size_t in_flight_max_;
};

}  // namespace tj
