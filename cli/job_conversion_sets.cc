#include "cli/job_conversion_sets.h"

#include <string>
#include <string_view>
#include <utility>

#include "cli/job_draft.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using field::child;
using field::Field;
using Json = nlohmann::json;

constexpr const char* kManagedBy = "runPolicy.managedBy names who looks after a TrainingJob";
constexpr const char* kOwnService =
    "the operator makes one headless Service, and MASTER_ADDR names worker 0 in it";
constexpr const char* kOneTemplate =
    "is another one than the first; all workers of a TrainingJob have one template, so these "
    "must be several jobs, or one program that asks for RANK";

constexpr LeftOutField kOfTrainJob[] = {
    {"managedBy", kManagedBy},
    {"initializer", "what it prepares must be there already, or be prepared by an init container"},
    {"datasetConfig", "the data must be there already, or be loaded by an init container"},
    {"modelConfig", "the model must be there already, or be loaded by an init container"},
    {"podTemplateOverrides", "write it into the template"},
    {"podSpecOverrides", "write it into the template"},
    {"runtimePatches", "write it into the template"},
    {"runtimeRef",
     "image, command, volumes and numbers that this runtime gives are not in this "
     "file"},
    {"trainingRuntimeRef",
     "image, command, volumes and numbers that this runtime gives are not "
     "in this file"},
};
constexpr std::string_view kTakenOfTrainJob[] = {"trainer", "suspend", "labels", "annotations",
                                                 "activeDeadlineSeconds"};
constexpr std::string_view kTakenOfTrainer[] = {
    "image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"};

constexpr LeftOutField kOfJobSet[] = {
    {"network", kOwnService},
    {"successPolicy", "here it is AllWorkers or Worker0"},
    {"startupPolicy", "all workers start together"},
    {"coordinator", "rank 0 is the coordinator"},
    {"managedBy", kManagedBy},
};
constexpr std::string_view kTakenOfJobSet[] = {"replicatedJobs", "suspend", "failurePolicy",
                                               "ttlSecondsAfterFinished"};
constexpr std::string_view kTakenOfReplicatedJob[] = {"name", "replicas", "template"};
constexpr std::string_view kTakenOfItsJob[] = {"completions",    "parallelism",
                                               "completionMode", "backoffLimit",
                                               "template",       "activeDeadlineSeconds"};

constexpr LeftOutField kOfSet[] = {
    {"rolloutStrategy", "a job ends, and is not rolled out"},
    {"startupPolicy", "all workers start together"},
    {"networkConfig", kOwnService},
};
constexpr std::string_view kTakenOfSet[] = {"replicas", "leaderWorkerTemplate"};
constexpr std::string_view kTakenOfLeaderWorker[] = {"size", "leaderTemplate", "workerTemplate"};

/// What a TrainJob says of its trainer, as a pod's template.
Json template_of_trainer(const Json& spec) {
  const Json& trainer = read::object_at(spec, "trainer");
  Json container = {{"name", "trainer"}};
  for (const char* name : {"image", "command", "args", "env"}) {
    if (const Json& value = read::value_at(trainer, name); !value.is_null())
      container[name] = value;
  }
  if (const Json& value = read::value_at(trainer, "resourcesPerNode"); !value.is_null())
    container["resources"] = value;
  Json pod_template = {{"spec", {{"containers", Json::array({std::move(container)})}}}};
  for (const char* name : {"labels", "annotations"}) {
    if (const Json& value = read::value_at(spec, name); !value.is_null())
      pod_template["metadata"][name] = value;
  }
  return pod_template;
}

/// A path in template_of_trainer() as it is in the manifest.
std::string path_in_train_job(const std::string& path) {
  constexpr std::pair<std::string_view, std::string_view> kPlaces[] = {
      {"spec.trainer.spec.containers[0].resources", "spec.trainer.resourcesPerNode"},
      {"spec.trainer.spec.containers[0]", "spec.trainer"},
      {"spec.trainer.metadata", "spec"}};
  for (const auto& [made, given] : kPlaces) {
    if (path.starts_with(made)) return std::string(given) + path.substr(made.size());
  }
  return path;
}

void take_trainer(JobDraft& draft, const Field& trainer) {
  const Field image = child(trainer, "image");
  const Field nodes = child(trainer, "numNodes");
  if (image.value == nullptr)
    draft.check().add(image,
                      "is missing; it must be the image to run, as the runtime that gives "
                      "it is not in this file");
  draft.check().check_text(image, {.min = 1, .max = 4096});
  draft.add_workers(nodes);
  if (nodes.value == nullptr)
    draft.note(nodes.path + " is missing: 1 worker; the runtime may give another number");
  if (child(trainer, "command").value == nullptr)
    draft.note("spec.trainer.command is missing: the image's own is run; the runtime may give one");
  draft.take_nproc(child(trainer, "numProcPerNode"));
  draft.leave_out_rest(trainer, kTakenOfTrainer, {});
}

/// Its pods' template, if it is the same as that of those before.
void take_replicated_job(JobDraft& draft, const Field& entry, Field& pod_template) {
  if (!draft.check().require_object(entry, "a name, replicas and a template")) return;
  draft.leave_out_rest(entry, kTakenOfReplicatedJob, {});
  const Field job = child(child(entry, "template"), "spec");
  if (!draft.check().require_object(job, "the specification of a Job")) return;
  const Field completions = child(job, "completions");
  draft.add_workers(child(entry, "replicas"),
                    completions.value != nullptr ? completions : child(job, "parallelism"));
  draft.take_number(child(job, "activeDeadlineSeconds"), "activeDeadlineSeconds");
  draft.take_number(child(job, "backoffLimit"), "maxRestarts");
  draft.leave_out_rest(job, kTakenOfItsJob, {});
  const Field own = child(job, "template");
  if (pod_template.path.empty()) {
    pod_template = own;
  } else if (own.value == nullptr || pod_template.value == nullptr ||
             *own.value != *pod_template.value) {
    draft.check().add(own, kOneTemplate);
  }
}

void take_failure_policy(JobDraft& draft, const Field& policy) {
  constexpr std::string_view kTaken[] = {"maxRestarts"};
  constexpr LeftOutField kKnown[] = {{"rules", "failurePolicy has rules of its own form"}};
  if (!draft.check().check_object(policy, "maxRestarts and rules")) return;
  draft.take_number(child(policy, "maxRestarts"), "maxRestarts");
  draft.leave_out_rest(policy, kTaken, kKnown);
}

}  // namespace

ConvertedJob from_train_job(const Json& object) {
  JobDraft draft(object);
  const Field spec = child(draft.root(), "spec");
  if (!draft.check().require_object(spec, "an object with runtimeRef and trainer"))
    return draft.take();
  const Field trainer = child(spec, "trainer");
  if (!draft.check().require_object(trainer, "an object with image, command and numNodes"))
    return draft.take();
  draft.take_run_policy(spec);
  take_trainer(draft, trainer);
  const Json pod_template = template_of_trainer(*spec.value);
  draft.take_template({.value = &pod_template, .path = trainer.path}, {});
  draft.leave_out_rest(spec, kTakenOfTrainJob, kOfTrainJob);
  ConvertedJob job = draft.take();
  for (FieldError& error : job.errors) error.field = path_in_train_job(error.field);
  for (std::string& note : job.notes) note = path_in_train_job(note);
  return job;
}

ConvertedJob from_job_set(const Json& object) {
  JobDraft draft(object);
  const Field spec = child(draft.root(), "spec");
  if (!draft.check().require_object(spec, "an object with replicatedJobs")) return draft.take();
  const Field jobs = child(spec, "replicatedJobs");
  if (jobs.value == nullptr) draft.check().add(jobs, "is missing; it must be a list of jobs");
  if (!draft.check().check_list(jobs, {.min = 1, .max = 1'000}, "jobs")) return draft.take();
  Field pod_template;
  for (std::size_t i = 0; i < jobs.value->size(); ++i)
    take_replicated_job(draft, field::item(jobs, i), pod_template);
  draft.take_run_policy(spec);
  take_failure_policy(draft, child(spec, "failurePolicy"));
  if (!pod_template.path.empty()) draft.take_template(pod_template, {.has_index = true});
  draft.leave_out_rest(spec, kTakenOfJobSet, kOfJobSet);
  return draft.take();
}

ConvertedJob from_leader_worker_set(const Json& object) {
  JobDraft draft(object);
  const Field spec = child(draft.root(), "spec");
  if (!draft.check().require_object(spec, "an object with leaderWorkerTemplate"))
    return draft.take();
  const Field group = child(spec, "leaderWorkerTemplate");
  if (!draft.check().require_object(group, "an object with size and workerTemplate"))
    return draft.take();
  const Field groups = child(spec, "replicas");
  if (groups.value != nullptr && *groups.value != 1)
    draft.leave_out(groups, "a TrainingJob is one group; create one for each");
  draft.add_workers(child(group, "size"));
  const Field leader = child(group, "leaderTemplate");
  const Field worker = child(group, "workerTemplate");
  const bool differ =
      leader.value != nullptr && worker.value != nullptr && *leader.value != *worker.value;
  if (differ) draft.check().add(leader, kOneTemplate);
  draft.take_template(worker, {});
  draft.note(
      "LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX are not set: MASTER_ADDR, "
      "WORLD_SIZE and RANK say the same");
  draft.leave_out_rest(group, kTakenOfLeaderWorker, {});
  draft.leave_out_rest(spec, kTakenOfSet, kOfSet);
  return draft.take();
}

}  // namespace tj
