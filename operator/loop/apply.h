// Carries out a plan's actions, idempotently: a name that is taken by our own object of this
// attempt is success, one that is taken by anybody else is never adopted and never deleted.
// Deletions are bound to the uid. The answers go into the View.
#pragma once
#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/kube_api.h"
#include "operator/loop/batch.h"
#include "operator/loop/view.h"
#include "operator/plan/plan.h"

namespace tj {

/// How a list of actions ended; the first thing that went wrong decides.
struct ApplyOutcome {
  bool complete = true;                      // every action is done
  std::optional<std::string> create_error;   // the server refused, in its words, or we could not
  Refusal refusal = Refusal::denied;         // of what kind create_error is
  std::chrono::milliseconds retry_after{0};  // its Retry-After
  bool is_busy = false;                      // 429 or 503 with a Retry-After: it has done nothing
  std::string error;                         // any other reason, for the log
  std::optional<Resource> stale;             // this cache missed an object
};

class Applier {
 public:
  using Done = std::function<void(ApplyOutcome)>;

  /// Network policies let operators in `operator_ns` in. `worker_created` is called with the job
  /// whenever one of its pods is there or was refused.
  Applier(KubeApi& api, View& view, Alarm& alarm, int requests_in_flight_max,
          std::string operator_ns, std::function<void(const ObjectKey& job)> worker_created)
      : api_(api),
        view_(view),
        alarm_(alarm),
        pace_(static_cast<std::size_t>(requests_in_flight_max)),
        operator_ns_(std::move(operator_ns)),
        worker_created_(std::move(worker_created)) {}

  /// The network policy, the Service, then the pods, the first alone, until the job is another
  /// one than it was. Deletions in `actions` are not touched.
  void create(const TrainingJob& job, const Actions& actions, Done done);
  /// The deletions in `actions`: pods in parallel, then the job.
  void remove(const TrainingJob& job, const Actions& actions, Done done);

 private:
  struct Child {
    Resource resource = Resource::pods;
    ObjectKey key;
    std::string job_uid;
    std::string job_name = {};  // of a pod
    int attempt = -1;           // of a pod
    std::function<nlohmann::json()> make = {};
    bool is_unwanted = false;  // it must go: a network policy
  };
  using StartChild = std::function<void(std::size_t index, Done ended)>;
  void run(const BatchSize& size, StartChild start, Done done);
  void create_in_turn(std::vector<Child> children, Done done);
  void create_pods(const TrainingJob& job, std::vector<CreatePod> pods, Done done);
  void create_child(Child child, Done done);
  void inspect_holder(const Child& child, const Done& done);
  void settle_network_policy(const Child& child, const std::string& live, const Done& done);
  void change_policy(Verb verb, const ObjectKey& key, const nlohmann::json& body, const Done& done);
  void remove_unseen(const Child& child, const std::string& body, const Done& done);
  ApplyOutcome judge_holder(const Child& child, const std::string& body);
  void remove_pod(const ObjectKey& key, const DeletePod& action, const Done& done);
  void remove_job(const TrainingJob& job, const Done& done);

  KubeApi& api_;
  View& view_;
  Alarm& alarm_;
  Pace pace_;
  std::string operator_ns_;
  std::function<void(const ObjectKey& job)> worker_created_;
};

}  // namespace tj
