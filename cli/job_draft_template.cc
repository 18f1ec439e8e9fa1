// The pod template of a JobDraft: without what the operator writes itself, and what became of the
// variables that it had.
#include <algorithm>

#include "cli/field_bounds.h"
#include "cli/job_draft.h"
#include "contract/launch_env.h"
#include "contract/names.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using field::child;
using field::Field;
using field::shown;
using Json = nlohmann::json;

constexpr const char* kIndexVariable = "JOB_COMPLETION_INDEX";
constexpr const char* kWorkerIndex = "$(RANK)";

constexpr LeftOutField kOfPod[] = {
    {"hostname", "the operator sets it to the name of the pod"},
    {"subdomain", "the operator sets it, and makes the headless Service"},
};

bool is_reserved(const std::string& name) {
  return std::ranges::find(reserved_env_names(), name) != reserved_env_names().end();
}

bool is_index_of_job(const Json& variable) {
  const Json& from = read::object_at(read::object_at(variable, "valueFrom"), "fieldRef");
  return read::string_at(from, "fieldPath").find("batch.kubernetes.io/job-completion-index") !=
         std::string::npos;
}

bool has_variable(const Json& variables, const char* name) {
  return std::any_of(variables.begin(), variables.end(), [&](const Json& variable) {
    return read::string_at(variable, "name") == name;
  });
}

}  // namespace

void JobDraft::take_template(const Field& pod_template, const TemplateOptions& options) {
  template_path_ = pod_template.path;
  if (!checker_.require_object(pod_template, "a pod template")) return;
  const Field metadata = child(pod_template, "metadata");
  Json made_metadata = Json::object();
  if (checker_.check_object(metadata, "labels and annotations"))
    take_metadata(made_metadata, metadata);
  template_ = Json::object();
  if (!made_metadata.empty()) template_["metadata"] = std::move(made_metadata);
  const Field spec = child(pod_template, "spec");
  if (!checker_.require_object(spec, "a pod's specification with containers")) return;
  Json pod = *spec.value;
  leave_out_restart_policy(spec);
  pod.erase("restartPolicy");
  for (const auto& [name, why] : kOfPod) {
    const Field field = child(spec, std::string(name));
    if (field.value != nullptr) leave_out(field, why);
    pod.erase(std::string(name));
  }
  clean_containers(pod, "initContainers", options);
  clean_containers(pod, "containers", options);
  template_["spec"] = std::move(pod);
}

/// What is no list of containers is left as it is: the rules of a TrainingJob tell of it.
void JobDraft::clean_containers(Json& pod, const char* list, const TemplateOptions& options) {
  const auto containers = pod.find(list);
  if (containers == pod.end() || !containers->is_array()) return;
  for (Json& container : *containers) {
    if (!container.is_object()) continue;
    const Json& env = read::value_at(container, "env");
    if (!env.is_array() && !env.is_null()) continue;
    Json kept = clean_env(read::array_at(container, "env"), options);
    container.erase("env");
    if (!kept.empty()) container["env"] = std::move(kept);
  }
}

Json JobDraft::clean_env(const Json& variables, const TemplateOptions& options) {
  Json kept = Json::array();
  if (options.has_index && !has_variable(variables, kIndexVariable))
    kept.push_back({{"name", kIndexVariable}, {"value", kWorkerIndex}});
  for (const Json& variable : variables) {
    const std::string name = read::string_at(variable, "name");
    if (is_reserved(name)) {
      drop_variable(name, variable);
    } else if (is_index_of_job(variable)) {
      kept.push_back({{"name", name}, {"value", kWorkerIndex}});
    } else {
      kept.push_back(variable);
    }
  }
  return kept;
}

void JobDraft::drop_variable(const std::string& name, const Json& variable) {
  const std::string value = read::string_at(variable, "value");
  dropped_.emplace(name, value);
  if (name == "NPROC_PER_NODE") nproc_ = whole_number<JobSpec>("nprocPerNode", value);
  if (name != "MASTER_PORT") return;
  master_port_ = whole_number<JobSpec>("masterPort", value);
  if (master_port_ == names::kMasterPortDefault) master_port_.reset();
}

void JobDraft::note_variables() {
  std::string list;
  for (const std::string_view name : reserved_env_names())
    if (dropped_.contains(name)) list += (list.empty() ? "" : ", ") + std::string(name);
  if (!list.empty()) note("variables that the operator sets for each worker are left out: " + list);
  for (const char* name : {"WORLD_SIZE", "NNODES"}) {
    const auto dropped = dropped_.find(name);
    const bool was_another = dropped != dropped_.end() && !dropped->second.empty() &&
                             dropped->second != std::to_string(workers_);
    if (was_another)
      note(std::string(name) + " was " + shown(Json(dropped->second)) + " and is " +
           std::to_string(workers_) + " now, the number of workers (pods)");
  }
}

}  // namespace tj
