#include "cli/job_conversion.h"

#include <span>
#include <string_view>

#include "cli/job_conversion_sets.h"
#include "cli/job_draft.h"
#include "cli/yaml_text.h"
#include "contract/names.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using field::child;
using field::Field;
using Json = nlohmann::json;

constexpr const char* kOneLostWorker =
    "one lost worker restarts all; failurePolicy says which failures end the job";
constexpr const char* kOwnSelector = "the operator finds its pods by labels of its own";

constexpr LeftOutField kOfJob[] = {
    {"backoffLimitPerIndex", kOneLostWorker},
    {"maxFailedIndexes", kOneLostWorker},
    {"podFailurePolicy", "failurePolicy has rules of its own form"},
    {"successPolicy", "here it is AllWorkers or Worker0"},
    {"selector", kOwnSelector},
    {"manualSelector", kOwnSelector},
    {"managedBy", "runPolicy.managedBy names who looks after a TrainingJob"},
};
constexpr std::string_view kTakenOfJob[] = {
    "completions", "parallelism",  "completionMode",        "template",
    "suspend",     "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"};

constexpr LeftOutField kOfPyTorchJob[] = {
    {"elasticPolicy", "another number of replicas begins a new attempt, with a new WORLD_SIZE"},
};
constexpr std::string_view kTakenOfPyTorchJob[] = {"pytorchReplicaSpecs", "runPolicy",
                                                   "nprocPerNode"};
constexpr std::string_view kTakenOfRunPolicy[] = {"suspend", "backoffLimit",
                                                  "activeDeadlineSeconds",
                                                  "ttlSecondsAfterFinished", "cleanPodPolicy"};
constexpr std::string_view kRoles[] = {"Master", "Worker"};
constexpr std::string_view kTakenOfRole[] = {"replicas", "restartPolicy", "template"};

ConvertedJob from_batch_job(const Json& object) {
  JobDraft draft(object);
  const Field spec = child(draft.root(), "spec");
  if (!draft.check().require_object(spec, "an object with template")) return draft.take();
  const Field completions = child(spec, "completions");
  const Field parallelism = child(spec, "parallelism");
  draft.add_workers(completions.value != nullptr ? completions : parallelism);
  const bool differ = completions.value != nullptr && parallelism.value != nullptr &&
                      *completions.value != *parallelism.value;
  if (differ) draft.leave_out(parallelism, "the workers of a gang run all at once");
  const bool is_indexed = read::string_at(*spec.value, "completionMode") == "Indexed";
  draft.take_run_policy(spec);
  draft.take_template(child(spec, "template"), {.has_index = is_indexed});
  draft.leave_out_rest(spec, kTakenOfJob, kOfJob);
  return draft.take();
}

/// Master and Worker are ranks of one gang, the Master its first.
void take_roles(JobDraft& draft, const Field& roles) {
  Field chosen;
  for (const std::string_view name : kRoles) {
    const Field role = child(roles, std::string(name));
    if (role.value == nullptr) continue;
    if (!draft.check().check_object(role, "replicas and template")) continue;
    draft.add_workers(child(role, "replicas"));
    draft.leave_out_restart_policy(role);
    draft.leave_out_rest(role, kTakenOfRole, {});
    const Field pod_template = child(role, "template");
    const bool differ = chosen.value != nullptr && pod_template.value != nullptr &&
                        *chosen.value != *pod_template.value;
    if (differ) draft.leave_out(chosen, "it is another one than Worker's, which all workers get");
    if (pod_template.value != nullptr || chosen.value == nullptr) chosen = pod_template;
  }
  draft.leave_out_rest(roles, kRoles, {});
  if (chosen.path.empty()) chosen = child(child(roles, "Worker"), "template");
  draft.take_template(chosen, {});
}

ConvertedJob from_pytorch_job(const Json& object) {
  JobDraft draft(object);
  const Field spec = child(draft.root(), "spec");
  if (!draft.check().require_object(spec, "an object with pytorchReplicaSpecs"))
    return draft.take();
  const Field roles = child(spec, "pytorchReplicaSpecs");
  if (!draft.check().require_object(roles, "an object with Master and Worker")) return draft.take();
  const Field policy = child(spec, "runPolicy");
  if (draft.check().check_object(policy, "deadlines, restarts and clean-up")) {
    draft.take_run_policy(policy);
    draft.take_choice(child(policy, "cleanPodPolicy"));
    draft.leave_out_rest(policy, kTakenOfRunPolicy, {});
  }
  take_roles(draft, roles);
  draft.take_nproc(child(spec, "nprocPerNode"));
  draft.leave_out_rest(spec, kTakenOfPyTorchJob, kOfPyTorchJob);
  return draft.take();
}

bool is_kind(const Json& object, std::string_view kind, std::string_view api_version) {
  return read::string_at(object, "kind") == kind &&
         read::string_at(object, "apiVersion") == api_version;
}

struct Kind {
  std::string_view kind;
  std::string_view api_version;
  ConvertedJob (*convert)(const Json& object);
};
constexpr Kind kKinds[] = {
    {"Job", "batch/v1", from_batch_job},
    {"PyTorchJob", "kubeflow.org/v1", from_pytorch_job},
    {"TrainJob", "trainer.kubeflow.org/v1alpha1", from_train_job},
    {"TrainJob", "kubeflow.org/v2alpha1", from_train_job},
    {"JobSet", "jobset.x-k8s.io/v1alpha2", from_job_set},
    {"LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", from_leader_worker_set},
};

void convert_into(std::vector<ConvertedJob>& jobs, const Json& object) {
  if (auto job = convert_job(object)) jobs.push_back(*std::move(job));
}

}  // namespace

std::optional<ConvertedJob> convert_job(const Json& object) {
  for (const auto& [kind, api_version, convert] : kKinds)
    if (is_kind(object, kind, api_version)) return convert(object);
  return std::nullopt;
}

std::vector<ConvertedJob> convert_jobs(const std::vector<Json>& documents) {
  std::vector<ConvertedJob> jobs;
  for (const Json& document : documents) {
    if (read::string_at(document, "kind") == names::kKind) return {};
    if (is_kind(document, "List", "v1")) {
      for (const Json& item : read::array_at(document, "items")) convert_into(jobs, item);
    } else {
      convert_into(jobs, document);
    }
  }
  return jobs;
}

std::string text_of(const ConvertedJob& job) {
  std::string text;
  for (const std::string& note : job.notes) text += "# " + note + "\n";
  return text + yaml_text(job.manifest);
}

}  // namespace tj
