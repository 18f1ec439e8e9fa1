#include "cli/slurm/from_manifest.h"

#include <nlohmann/json.hpp>

#include "cli/left_out.h"
#include "cli/slurm/pod_worker.h"
#include "contract/outcome.h"
#include "operator/api/json.h"
#include "operator/api/read.h"
#include "operator/api/words.h"

namespace tj::slurm {
namespace {

using field::child;
using field::Field;
using field::item;
using Json = nlohmann::json;

constexpr std::size_t kFieldsToldMax = 200;  // of one object
constexpr int kSignalSecondsMax = 65'535;    // what sbatch takes

constexpr std::string_view kTakenOfJob[] = {"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::string_view kTakenOfMetadata[] = {
    "name",       "namespace",         "uid",          "resourceVersion",
    "generation", "creationTimestamp", "managedFields"};
constexpr LeftOutField kOfMetadata[] = {
    {"labels", "SLURM has no labels; --partition, --account and --sbatch say where a job queues"},
    {"annotations", "nobody reads them"},
};
constexpr std::string_view kTakenOfSpec[] = {"runPolicy",    "failurePolicy", "masterPort",
                                             "nprocPerNode", "replicaSpecs",  "successPolicy",
                                             "nodeLoss",     "network"};
constexpr std::string_view kTakenOfRunPolicy[] = {"suspend", "activeDeadlineSeconds", "maxRestarts",
                                                  "restartScope"};
constexpr LeftOutField kOfRunPolicy[] = {
    {"startDeadlineSeconds", "a job starts with all of its nodes, or waits"},
    {"ttlSecondsAfterFinished", "SLURM forgets jobs by its own rules"},
    {"cleanPodPolicy", "nothing of a job runs on when it has ended"},
    {"restartBackoffSeconds", "SLURM lets a job wait two minutes before it starts again"},
    {"restartBudgetResetSeconds", "maxRestarts counts all restarts after failures"},
    {"restartBudgetResetOnProgress", "maxRestarts counts all restarts after failures"},
    {"heartbeatTimeoutSeconds", "the trainer's own --limit ends a run that stands still"},
    {"managedBy", "SLURM looks after the job"},
};
constexpr LeftOutField kOfNodeLoss[] = {
    {"toleranceSeconds",
     "SLURM's SlurmdTimeout says when a silent node is lost; --requeue starts "
     "the job again then"},
    {"forceDeleteSeconds", "SLURM gives a job other nodes at once"},
    {"excludeSeconds", "SLURM sets a node that was lost aside itself"},
};
constexpr const char* kNodesAreChosen =
    "--partition and --sbatch=--constraint=NAME say which nodes";
constexpr std::string_view kTakenOfPod[] = {
    "containers", "volumes", "terminationGracePeriodSeconds", "restartPolicy", "hostNetwork",
    "hostIPC",    "hostPID"};
constexpr LeftOutField kOfPod[] = {
    {"initContainers", "run what they do before, or in the command"},
    {"nodeSelector", kNodesAreChosen},
    {"affinity", kNodesAreChosen},
    {"tolerations", kNodesAreChosen},
    {"nodeName", "--sbatch=--nodelist=NAME names a node"},
    {"topologySpreadConstraints", "each worker has a node of its own"},
    {"schedulerName", "SLURM is the scheduler"},
    {"priorityClassName", "--sbatch=--qos=NAME says how urgent it is"},
    {"priority", "--sbatch=--qos=NAME says how urgent it is"},
    {"preemptionPolicy", "SLURM's partitions and QOS say who gives way"},
    {"securityContext", "tasks run as the person who submits the job"},
    {"serviceAccountName", "there is no API server to speak to"},
    {"serviceAccount", "there is no API server to speak to"},
    {"automountServiceAccountToken", "there is no API server to speak to"},
    {"imagePullSecrets", "the container runtime has credentials of its own"},
    {"runtimeClassName", "--container names the runtime"},
    {"hostAliases", "names are those of the nodes"},
    {"dnsPolicy", "names are those of the nodes"},
    {"dnsConfig", "names are those of the nodes"},
    {"hostname", "a task has the name of its node"},
    {"subdomain", "a task has the name of its node"},
    {"enableServiceLinks", "there are no Services"},
    {"shareProcessNamespace", "tasks see the processes of their node"},
    {"activeDeadlineSeconds", "--time-limit, or runPolicy.activeDeadlineSeconds"},
    {"resourceClaims", "--sbatch=--gres=NAME:N asks for devices"},
};

class Conversion {
 public:
  Conversion(const Json& manifest, const SlurmPlace& place)
      : root_{.value = &manifest, .path = ""}, place_(place) {}

  Result<BatchJob> take() {
    const auto job = job_from_json(*root_.value);
    if (!job) return job.error();
    take_metadata(*job);
    take_spec(job->spec);
    take_template();
    job_.notes = left_out_.take();
    const auto errors = checker_.take();
    if (errors.empty()) return job_;
    return Error{Code::invalid, describe(errors), "", {}};
  }

 private:
  void take_metadata(const TrainingJob& job) {
    job_.name = job.meta.name;
    job_.runtime = place_.runtime;
    if (!job.meta.ns.empty()) job_.ns = job.meta.ns;
    left_out_.leave_out_rest(root_, kTakenOfJob, {});
    left_out_.leave_out_rest(child(root_, "metadata"), kTakenOfMetadata, kOfMetadata);
  }

  void take_spec(const JobSpec& spec) {
    const Field given = child(root_, "spec");
    job_.node_count = spec.worker_count;
    job_.restarts_max = spec.run.max_restarts;
    job_.deadline = spec.run.active_deadline;
    job_.is_held = spec.run.suspend;
    if (child(given, "masterPort").value != nullptr) job_.master_port = spec.master_port;
    job_.nproc_per_node = spec.nproc_per_node;
    left_out_.leave_out_rest(given, kTakenOfSpec, {});
    leave_out_of(child(given, "runPolicy"), kTakenOfRunPolicy, kOfRunPolicy);
    leave_out_of(child(given, "nodeLoss"), {}, kOfNodeLoss);
    if (job_.is_held)
      left_out_.note("spec.runPolicy.suspend is --hold; scontrol release starts the job");
    if (spec.success == SuccessPolicy::worker0)
      left_out_.leave_out(child(given, "successPolicy"),
                          "the job has succeeded when all tasks have ended with 0");
    if (spec.network.network_policy)
      left_out_.leave_out(child(child(given, "network"), "networkPolicy"),
                          "all that reaches a node reaches its tasks");
    take_rules(spec.failure, child(child(given, "failurePolicy"), "rules"));
  }

  void leave_out_of(const Field& object, field::Names taken, std::span<const LeftOutField> known) {
    if (object.value != nullptr) left_out_.leave_out_rest(object, taken, known);
  }

  void take_rules(const FailurePolicy& policy, const Field& given) {
    for (std::size_t i = 0; i < policy.rules.size(); ++i) {
      const FailureRule& rule = policy.rules[i];
      const Field of_rule = item(given, i);
      for (const char* list : {"conditions", "causes"}) {
        const Field causes = child(of_rule, list);
        if (causes.value != nullptr && !causes.value->empty())
          left_out_.leave_out(causes,
                              "a script of SLURM hears exit codes alone; lost nodes and "
                              "preemption never count as failures");
      }
      ExitRule exit{.action = rule.action, .exit_codes = rule.exit_codes};
      for (const int signal : rule.signals)
        exit.exit_codes.push_back(exit_code::kSignalBase + signal);
      if (exit.exit_codes.empty()) continue;
      if (rule.action == FailureAction::exclude_node_and_restart)
        left_out_.note(of_rule.path +
                       ".action (ExcludeNodeAndRestart) is Restart: a job can't set "
                       "its nodes aside; scontrol update JobId=N ExcNodeList=NODE does, while it "
                       "waits");
      job_.exit_rules.push_back(std::move(exit));
    }
  }

  void take_template() {
    const Field worker = child(child(child(root_, "spec"), "replicaSpecs"), "Worker");
    const Field pod_template = child(worker, "template");
    const Field pod = child(pod_template, "spec");
    leave_out_of(child(pod_template, "metadata"), {}, kOfMetadata);
    const Field grace = child(pod, "terminationGracePeriodSeconds");
    if (const auto seconds =
            checker_.check_whole_number(grace, {.min = 0, .max = kSignalSecondsMax}))
      job_.signal_seconds = std::max(job_.signal_seconds, static_cast<int>(*seconds));
    PodWorker(job_, place_, left_out_, checker_).take(pod_template);
    if (!job_.nproc_per_node && job_.gpus_per_node > 0) job_.nproc_per_node = job_.gpus_per_node;
    const Field containers = child(pod, "containers");
    for (std::size_t i = 1; i < containers.value->size(); ++i)
      left_out_.leave_out(item(containers, i), "a task runs the first container alone");
    left_out_.leave_out_rest(pod, kTakenOfPod, kOfPod);
  }

  Field root_;
  const SlurmPlace& place_;
  field::FieldChecker checker_{field::UnknownFields::ignored};
  LeftOut left_out_{"SLURM has nothing like it", kFieldsToldMax};
  BatchJob job_;
};

}  // namespace

Result<BatchJob> from_manifest(const Json& manifest, const SlurmPlace& place) {
  return Conversion(manifest, place).take();
}

}  // namespace tj::slurm
