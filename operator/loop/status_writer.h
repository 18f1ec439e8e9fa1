// Writes a job's status through the subresource, guarded by the resourceVersion that the decision
// was made from, and never blindly again after a conflict.
#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"
#include "operator/loop/view.h"
#include "operator/loop/work_queue.h"

namespace tj {

enum class StatusResult {
  written,
  job_gone,  // says the server
  outdated,  // somebody else wrote first: decide again, from what the View knows now
  failed,    // try again later
};

struct StatusOutcome {
  StatusResult result = StatusResult::failed;
  std::chrono::milliseconds retry_after{0};  // its Retry-After
  std::string error;                         // for the log
};

class StatusWriter {
 public:
  using Done = std::function<void(StatusOutcome)>;

  StatusWriter(KubeApi& api, View& view) : api_(api), view_(view) {}
  /// `status` differs from the job's.
  void write(const TrainingJob& job, const JobStatus& status, Done done);

 private:
  void look_again(const TrainingJob& job, const JobStatus& status, const Error& why, Done done);

  KubeApi& api_;
  View& view_;
};

}  // namespace tj
