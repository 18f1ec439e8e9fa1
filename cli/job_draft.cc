#include "cli/job_draft.h"

#include <algorithm>
#include <array>

#include "cli/field_bounds.h"
#include "contract/json_integer.h"
#include "contract/names.h"
#include "operator/api/policy_fields.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using field::Bounds;
using field::child;
using field::Field;
using field::shown;
using Json = nlohmann::json;

/// Fields of a run policy, and what they are called in that of a TrainingJob.
constexpr std::array<std::pair<const char*, const char*>, 3> kRunPolicyNumbers = {
    {{"backoffLimit", "maxRestarts"},
     {"activeDeadlineSeconds", "activeDeadlineSeconds"},
     {"ttlSecondsAfterFinished", "ttlSecondsAfterFinished"}}};

/// Written by kubectl and by the controllers of Jobs about one object.
bool is_of_machinery(const std::string& key) {
  constexpr std::string_view kPrefixes[] = {"batch.kubernetes.io/", "training.kubeflow.org/",
                                            "kubectl.kubernetes.io/last-applied-configuration"};
  return key == "controller-uid" || key == names::kLabelJobName ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return key.starts_with(prefix); });
}

std::string complaint_about(const Json& object) {
  const Json& name = read::value_at(read::object_at(object, "metadata"), "name");
  return read::string_at(object, "kind") + (name.is_null() ? "" : " " + shown(name)) +
         " (apiVersion " + read::string_at(object, "apiVersion") + ") must be a " + names::kKind +
         " (apiVersion " + names::kApiVersion + ")";
}

}  // namespace

JobDraft::JobDraft(const Json& object)
    : root_{.value = &object, .path = ""}, checker_(field::UnknownFields::ignored) {
  const Field metadata = child(root_, "metadata");
  if (!checker_.require_object(metadata, "an object with the job's name")) return;
  metadata_["name"] = read::value_at(*metadata.value, "name");
  const Field ns = child(metadata, "namespace");
  checker_.check_text(ns, {.min = 1, .max = names::kDnsLabelMax});
  if (ns.value != nullptr) metadata_["namespace"] = *ns.value;
  take_metadata(metadata_, metadata);
}

/// The labels, or the annotations, that a person wrote.
Json JobDraft::texts_of(const Field& metadata, const std::string& name) {
  Json texts = Json::object();
  const Field given = child(metadata, name);
  if (!checker_.check_object(given, "names and texts")) return texts;
  for (const auto& [key, value] : given.value->items()) {
    if (!value.is_string()) {
      checker_.add({.value = &value, .path = given.path + "." + key},
                   "is " + shown(value) + "; it must be a text: put it in quotes");
    } else if (!is_of_machinery(key)) {
      texts[key] = value;
    }
  }
  return texts;
}

void JobDraft::take_metadata(Json& target, const Field& metadata) {
  for (const char* name : {"labels", "annotations"}) {
    if (Json texts = texts_of(metadata, name); !texts.empty()) target[name] = std::move(texts);
  }
}

void JobDraft::add_workers(const Field& count) {
  const auto number = checker_.check_whole_number(count, field::kWorkers);
  workers_ += count.value == nullptr ? 1 : number.value_or(0);
}

void JobDraft::add_workers(const Field& groups, const Field& each) {
  long long count = 1;
  for (const Field& factor : {groups, each}) {
    const auto number = checker_.check_whole_number(factor, field::kWorkers);
    if (factor.value != nullptr) count *= number.value_or(0);
  }
  workers_ += count;
}

void JobDraft::take_number(const Field& number, const char* ours) {
  if (number.value == nullptr) return;
  const Bounds bounds = bounds_of<RunPolicy>(ours);
  const auto given = json_integer<long long>(*number.value);
  if (given && *given > bounds.max) {
    note(number.path + " is " + shown(*number.value) + "; " + ours + " is at most " +
         std::to_string(bounds.max));
    run_policy_[ours] = bounds.max;
  } else if (const auto fits = checker_.check_whole_number(number, bounds)) {
    run_policy_[ours] = *fits;
  }
}

void JobDraft::take_run_policy(const Field& policy) {
  for (const auto& [name, ours] : kRunPolicyNumbers) take_number(child(policy, name), ours);
  const Field suspend = child(policy, "suspend");
  checker_.check_boolean(suspend);
  if (suspend.value != nullptr && *suspend.value == true) run_policy_["suspend"] = true;
}

void JobDraft::take_choice(const Field& choice) {
  if (choice.value == nullptr) return;
  run_policy_[choice.path.substr(choice.path.rfind('.') + 1)] = *choice.value;
}

void JobDraft::take_nproc(const Field& count) {
  if (count.value == nullptr) return;
  const std::string text =
      count.value->is_string() ? read::text_of(*count.value) : count.value->dump();
  nproc_ = whole_number<JobSpec>("nprocPerNode", text);
  if (!nproc_) {
    leave_out(count, "GPUs in the limits are counted, else it is auto");
  }
}

void JobDraft::leave_out_restart_policy(const Field& parent) {
  const Field policy = child(parent, "restartPolicy");
  if (policy.value == nullptr || *policy.value == "Never") return;
  leave_out(policy, "a worker is not restarted alone; all are, by runPolicy and failurePolicy");
}

ConvertedJob JobDraft::take() {
  ConvertedJob job;
  job.complaint = complaint_about(*root_.value);
  note_variables();
  job.notes = left_out_.take();
  Json spec = Json::object();
  if (!run_policy_.empty()) spec["runPolicy"] = std::move(run_policy_);
  if (master_port_) spec["masterPort"] = *master_port_;
  if (nproc_) spec["nprocPerNode"] = *nproc_;
  Json& worker = spec["replicaSpecs"]["Worker"];
  worker["replicas"] = workers_;
  worker["template"] = std::move(template_);
  job.manifest = Json::object();
  job.manifest["apiVersion"] = names::kApiVersion;
  job.manifest["kind"] = names::kKind;
  job.manifest["metadata"] = std::move(metadata_);
  job.manifest["spec"] = std::move(spec);
  job.errors = checker_.take();
  if (job.errors.empty()) check_result(job);
  return job;
}

/// By the rules of a TrainingJob.
void JobDraft::check_result(ConvertedJob& job) const {
  constexpr std::string_view kOurTemplate = "spec.replicaSpecs.Worker.template";
  job.errors = validate_manifest(job.manifest);
  for (FieldError& error : job.errors) {
    if (error.field.starts_with(kOurTemplate))
      error.field.replace(0, kOurTemplate.size(), template_path_);
  }
}

}  // namespace tj
