// Every name that operator, trainer and command line must agree on: API group, labels, variables of
// identity. Who writes and who reads stands at each.
#pragma once
#include <string>

namespace tj::names {

inline constexpr const char* kApiGroup = "kubebrain.io";
inline constexpr const char* kApiVersion = "kubebrain.io/v1";
inline constexpr const char* kKind = "TrainingJob";
inline constexpr const char* kPlural = "trainingjobs";
// Who looks after a job unless its runPolicy.managedBy names another.
inline constexpr const char* kManager = "kubebrain.io/trainingjob-operator";

// Labels, written by the operator on each pod and Service.
inline constexpr const char* kLabelJobName =
    "job-name";  // read by people: kubectl logs -l job-name=<job>
inline constexpr const char* kLabelTrainingJob =
    "kubebrain.io/trainingjob";  // read by the operator's watches: selects its own objects
inline constexpr const char* kLabelWorkerIndex =
    "kubebrain.io/worker-index";  // read by the operator: the rank of the pod
inline constexpr const char* kLabelAttempt =
    "kubebrain.io/attempt";  // read by the operator: the gang the pod belongs to

// Annotations, written by the operator on the Service of a job's first attempt, read by it until
// the job's status says the same: what the pods of that attempt are made from.
inline constexpr const char* kAnnotationWorldSize = "kubebrain.io/world-size";
inline constexpr const char* kAnnotationTemplateHash = "kubebrain.io/template-hash";

// Identity, written into each container, read by the trainer for rendezvous keys and reports.
inline constexpr const char* kEnvJobName = "TRAININGJOB_NAME";
inline constexpr const char* kEnvJobNamespace = "TRAININGJOB_NAMESPACE";
inline constexpr const char* kEnvJobUid = "TRAININGJOB_UID";
inline constexpr const char* kEnvAttempt = "TRAININGJOB_ATTEMPT";
inline constexpr const char* kEnvPodIp = "POD_IP";
inline constexpr const char* kEnvNodeName = "NODE_NAME";
// Where the last words go. Unset in a pod: then kubelet's default path holds.
inline constexpr const char* kEnvTerminationLog = "TRAININGJOB_TERMINATION_LOG";
inline constexpr const char* kTerminationLogDefault = "/dev/termination-log";

// On the job or its pod template, read by the operator: where rank 0 serves /progress, or "off".
inline constexpr const char* kAnnotationProgressPort = "kubebrain.io/progress-port";
inline constexpr const char* kProgressPath = "/progress";

inline constexpr int kMasterPortDefault = 29500;
inline constexpr int kProgressPortDefault = 29600;  // of our trainer, in a pod
inline constexpr int kDnsLabelMax = 63;             // RFC 1035, also the limit of a label's value

/// `<job>-worker-<index>`: the pod of one rank.
inline std::string worker_pod(const std::string& job, int worker_index) {
  return job + "-worker-" + std::to_string(worker_index);
}
/// `<job>-worker-0.<job>`: resolvable through the job's headless Service before the pod is ready.
inline std::string master_addr(const std::string& job) { return worker_pod(job, 0) + "." + job; }

}  // namespace tj::names
