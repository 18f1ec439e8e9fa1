#include "cli/check/check_job.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj::check {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSuffix = "-check";
constexpr std::string_view kSharedFlags[] = {"--model",     "--data",       "--out",
                                             "--init-from", "--batch-size", "--accumulation",
                                             "--zero",      "--precision",  "--ema"};
/// Of models: how the data is read. `trainer check` takes them behind `--`.
constexpr std::string_view kReadFlags[] = {
    "--vocabulary",     "--tokenizer",     "--cameras",       "--camera-map", "--state-feature",
    "--action-feature", "--delta-actions", "--normalisation", "--statistics", "--horizon",
    "--action-dim",     "--image-size",    "--prompt-tokens", "--cut-prompts"};
constexpr const char* kOfContainer[] = {
    "env",           "envFrom",    "resources",       "volumeMounts",
    "volumeDevices", "workingDir", "securityContext", "imagePullPolicy"};
/// Of the pod: what belongs to the job's own containers, or is decided anew.
constexpr const char* kNotOfPod[] = {
    "initContainers", "containers",      "ephemeralContainers",  "restartPolicy",
    "readinessGates", "schedulingGates", "activeDeadlineSeconds"};
constexpr int kPortMax = 65535;

/// `<job>-check`, cut so that its pods' names fit.
std::string name_of_check(const std::string& job, int workers) {
  const std::size_t suffix_chars = names::worker_pod("", workers - 1).size() + kSuffix.size();
  std::string name = job.substr(0, names::kDnsLabelMax - suffix_chars);
  while (name.ends_with('-')) name.pop_back();
  return name + std::string(kSuffix);
}

bool is_program(const std::string& word, std::string_view name) {
  return word == name || word.ends_with("/" + std::string(name));
}

std::vector<std::string> words_of(const Json& container) {
  std::vector<std::string> words;
  for (const char* list : {"command", "args"}) {
    for (const Json& word : read::array_at(container, list)) words.push_back(read::text_of(word));
  }
  return words;
}

/// Any of them, and where there are as many as workers, one for each.
Json affinity_to(const Place& place, const std::string& check_name, int workers) {
  Json terms = Json::array();
  for (const std::string& node : place.nodes) {
    Json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
    terms.push_back({{"matchFields", Json::array({std::move(field)})}});
  }
  Json affinity;
  affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
      std::move(terms);
  if (static_cast<int>(place.nodes.size()) != workers) return affinity;
  Json apart = {{"topologyKey", "kubernetes.io/hostname"},
                {"labelSelector", {{"matchLabels", {{names::kLabelTrainingJob, check_name}}}}}};
  affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
      Json::array({std::move(apart)});
  return affinity;
}

class Maker {
 public:
  Maker(const Json& job, const Place& place, const CheckOptions& options)
      : given_(job), place_(place), options_(options) {
    const Json& worker =
        read::object_at(read::object_at(read::object_at(job, "spec"), "replicaSpecs"), "Worker");
    workers_ = std::max(1, read::number_at(worker, "replicas", 1));
    template_ = read::object_at(worker, "template");
    name_ = name_of_check(meta_from_json(job).name, workers_);
  }

  CheckJob make() {
    CheckJob made;
    made.job = {{"apiVersion", names::kApiVersion}, {"kind", names::kKind}};
    made.job["metadata"] = metadata();
    made.job["spec"] = spec();
    made.notes = std::move(notes_);
    return made;
  }

 private:
  /// Owned by the job: it goes with it.
  Json metadata() const {
    const ObjectMeta meta = meta_from_json(given_);
    Json metadata = {{"name", name_}, {"annotations", {{names::kAnnotationProgressPort, "off"}}}};
    if (!meta.ns.empty()) metadata["namespace"] = meta.ns;
    if (meta.uid.empty()) return metadata;
    Json owner = {{"apiVersion", names::kApiVersion},
                  {"kind", names::kKind},
                  {"name", meta.name},
                  {"uid", meta.uid}};
    metadata["ownerReferences"] = Json::array({std::move(owner)});
    return metadata;
  }

  Json spec() {
    const Json& given = read::object_at(given_, "spec");
    Json spec = {{"runPolicy",
                  {{"maxRestarts", 0},
                   {"cleanPodPolicy", "None"},
                   {"activeDeadlineSeconds", options_.timeout.count()},
                   {"ttlSecondsAfterFinished", kLeftOverMax.count()}}}};
    for (const char* name : {"masterPort", "nprocPerNode", "network"}) {
      if (const Json& value = read::value_at(given, name); !value.is_null()) spec[name] = value;
    }
    const bool on_host = read::bool_at(read::object_at(template_, "spec"), "hostNetwork");
    if (on_host && place_.is_active) {
      const int port = read::number_at(given, "masterPort", names::kMasterPortDefault);
      spec["masterPort"] = port < kPortMax ? port + 1 : port - 1;
      notes_.push_back("the job has the nodes' network and its port: the next one is looked at");
    }
    Json& worker = spec["replicaSpecs"]["Worker"];
    worker["replicas"] = workers_;
    worker["template"] = pod_template();
    return spec;
  }

  Json pod_template() {
    Json made = Json::object();
    if (const Json& metadata = read::object_at(template_, "metadata"); !metadata.empty())
      made["metadata"] = metadata;
    made["metadata"]["annotations"][names::kAnnotationProgressPort] = "off";
    Json pod = read::object_at(template_, "spec");
    const bool has_others = read::array_at(pod, "containers").size() > 1 ||
                            !read::array_at(pod, "initContainers").empty();
    if (has_others) notes_.push_back("init containers and sidecars are not run");
    for (const char* name : kNotOfPod) pod.erase(name);
    pod["containers"] = Json::array({container()});
    if (!place_.nodes.empty()) pod["affinity"] = affinity_to(place_, name_, workers_);
    made["spec"] = std::move(pod);
    return made;
  }

  Json container() {
    const Json& main = main_container(template_);
    const std::vector<std::string> arguments =
        options_.arguments.empty() ? check_arguments(main) : options_.arguments;
    Json made = {{"name", kContainer}, {"command", {"trainer", "check"}}};
    for (const std::string& word : arguments) made["command"].push_back(word);
    made["image"] = options_.image.empty() ? read::value_at(main, "image") : Json(options_.image);
    for (const char* name : kOfContainer) {
      if (const Json& value = read::value_at(main, name); !value.is_null()) made[name] = value;
    }
    if (place_.is_active) leave_devices(made);
    return made;
  }

  /// With the job's own requests a check would wait until the job has ended.
  void leave_devices(Json& container) {
    container.erase("resources");
    container["env"].push_back({{"name", "NVIDIA_VISIBLE_DEVICES"}, {"value", "void"}});
    notes_.push_back("the job runs: its GPUs, other devices and memory are not looked at");
  }

  const Json& given_;
  const Place& place_;
  const CheckOptions& options_;
  int workers_ = 1;
  Json template_;
  std::string name_;
  std::vector<std::string> notes_;
};

}  // namespace

Place place_of(const std::vector<Pod>& pods, const std::string& job_uid) {
  Place place;
  std::set<std::string> nodes;
  for (const Pod& pod : pods) {
    if (pod.meta.controller_uid != job_uid || pod.node.empty()) continue;
    nodes.insert(pod.node);
    const bool has_ended = pod.phase == PodPhase::succeeded || pod.phase == PodPhase::failed;
    place.is_active = place.is_active || !has_ended;
  }
  place.nodes.assign(nodes.begin(), nodes.end());
  return place;
}

std::vector<std::string> check_arguments(const Json& container) {
  const std::vector<std::string> words = words_of(container);
  std::size_t at = 0;
  while (at + 1 < words.size() && !(is_program(words[at], "trainer") && words[at + 1] == "train"))
    ++at;
  std::vector<std::string> arguments;
  std::vector<std::string> of_model;
  for (at += 2; at < words.size(); ++at) {
    const std::string flag = words[at].substr(0, words[at].find('='));
    const bool is_shared = std::ranges::find(kSharedFlags, flag) != std::end(kSharedFlags);
    const bool is_read = std::ranges::find(kReadFlags, flag) != std::end(kReadFlags);
    if (!is_shared && !is_read) continue;
    auto& into = is_shared ? arguments : of_model;
    into.push_back(words[at]);
    const bool has_value_behind =
        flag == words[at] && at + 1 < words.size() && !words[at + 1].starts_with("--");
    if (has_value_behind) into.push_back(words[++at]);
  }
  if (!of_model.empty()) arguments.push_back("--");
  arguments.insert(arguments.end(), of_model.begin(), of_model.end());
  return arguments;
}

CheckJob make_check_job(const Json& job, const Place& place, const CheckOptions& options) {
  return Maker(job, place, options).make();
}

}  // namespace tj::check
