#include "cli/submit/made_job.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <regex>
#include <string_view>
#include <utility>

#include "cli/submit/volumes.h"
#include "contract/launch_env.h"
#include "contract/names.h"
#include "operator/api/field.h"
#include "operator/api/policy_fields.h"

namespace tj::submit {
namespace {

using Json = nlohmann::json;
using field::shown;

constexpr const char* kScriptVolume = "script";
constexpr int kScriptMode = 0555;  // everybody reads and runs it

/// Fields of the manifest that one flag alone decides.
constexpr std::pair<std::string_view, const char*> kFlagsOfFields[] = {
    {"metadata.name", "--name"},
    {"metadata.labels", "--label"},
    {"spec.masterPort", "--port"},
    {"spec.replicaSpecs.Worker.replicas", "--workers"}};

struct Pair {
  std::string name;
  std::string value;
};

std::optional<Pair> pair_of(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  return Pair{text.substr(0, equals), text.substr(equals + 1)};
}

int read_number(const char* flag, const std::string& text, field::Bounds bounds,
                std::vector<FieldError>& errors) {
  const auto number =
      parse_int(flag, text, static_cast<int>(bounds.min), static_cast<int>(bounds.max));
  if (number) return *number;
  errors.push_back({flag, number.error().message});
  return static_cast<int>(bounds.min);
}

/// As an API server takes names of variables (IsEnvVarName, but for what it takes since 1.30).
bool is_variable_name(const std::string& name) {
  static const std::regex kName("[-._a-zA-Z][-._a-zA-Z0-9]{0,1000}");
  return name.size() <= 1001 && std::regex_match(name, kName) && name != "." &&
         !name.starts_with("..");
}

/// A variable is set once; the operator's are set already.
Json read_env(const std::vector<std::string>& texts, std::vector<FieldError>& errors) {
  Json env = Json::array();
  for (const std::string& text : texts) {
    const auto variable = pair_of(text);
    if (!variable || !is_variable_name(variable->name)) {
      errors.push_back({"--env", "is " + shown(Json(text)) +
                                     "; it must be NAME=VALUE, the name of letters, digits, '_', "
                                     "'-' and '.'"});
      continue;
    }
    const auto reserved = reserved_env_names();
    if (std::ranges::find(reserved, variable->name) != reserved.end()) {
      errors.push_back({"--env", "is " + shown(Json(text)) +
                                     "; it must be another name: the operator sets this variable "
                                     "for each worker"});
      continue;
    }
    std::erase_if(env.get_ref<Json::array_t&>(),
                  [&](const Json& known) { return known["name"] == variable->name; });
    env.push_back({{"name", variable->name}, {"value", variable->value}});
  }
  return env;
}

/// As an API server takes labels (k8s.io/apimachinery, validation.IsQualifiedName).
bool is_label(const Pair& label) {
  static const std::regex kWord("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?");
  static const std::regex kPrefix("[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?");
  const auto slash = label.name.find('/');
  const bool has_prefix = slash != std::string::npos;
  if (label.name.size() > 320) return false;
  if (has_prefix && !std::regex_match(label.name.substr(0, slash), kPrefix)) return false;
  return std::regex_match(label.name.substr(has_prefix ? slash + 1 : 0), kWord) &&
         label.value.size() <= names::kDnsLabelMax &&
         (label.value.empty() || std::regex_match(label.value, kWord));
}

Json read_labels(const std::vector<std::string>& texts, std::vector<FieldError>& errors) {
  Json labels = Json::object();
  for (const std::string& text : texts) {
    const auto label = pair_of(text);
    if (label && is_label(*label)) {
      labels[label->name] = label->value;
    } else {
      errors.push_back({"--label", "is " + shown(Json(text)) +
                                       "; it must be NAME=VALUE of letters, digits, '-', '_' and "
                                       "'.', 63 at most, as in kueue.x-k8s.io/queue-name=team-a"});
    }
  }
  return labels;
}

/// FNV-1a, 64 bit: another text is another ConfigMap, for one that pods mount must not change.
std::string short_hash(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211ull;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return std::string(digits.data(), 10);
}

Json config_map_of(const std::string& job_name, const Script& script) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", job_name + "-script-" + short_hash(script.text)},
            {"labels", {{names::kLabelJobName, job_name}}}}},
          {"immutable", true},
          {"data", {{script.file_name, script.text}}}};
}

Json command_of(const SubmitFlags& flags, const std::optional<Script>& script,
                std::vector<FieldError>& errors) {
  if (!script) return flags.command;
  const auto interpreter = interpreter_of(*script);
  if (!interpreter) {
    errors.push_back({interpreter.error().subject, interpreter.error().message});
    return Json::array();
  }
  std::vector<std::string> words = *interpreter;
  words.push_back(std::string(kScriptFolder) + "/" + script->file_name);
  words.insert(words.end(), flags.command.begin(), flags.command.end());
  return words;
}

void mount_script(Volumes& volumes, const std::string& config_map,
                  std::vector<FieldError>& errors) {
  for (const Json& mount : volumes.mounts) {
    if (mount["mountPath"] == kScriptFolder)
      errors.push_back({"--mount", std::string("is for ") + kScriptFolder +
                                       ", where the script is; it must be another place"});
  }
  volumes.volumes.push_back({{"name", kScriptVolume},
                             {"configMap", {{"name", config_map}, {"defaultMode", kScriptMode}}}});
  volumes.mounts.push_back(
      {{"name", kScriptVolume}, {"mountPath", kScriptFolder}, {"readOnly", true}});
}

void add_resources(Json& container, const SubmitFlags& flags, std::vector<FieldError>& errors) {
  Json limits = Json::object();
  const int gpus =
      read_number("--gpus-per-worker", flags.gpus_per_worker, {.min = 0, .max = kGpusMax}, errors);
  if (gpus > 0) limits["nvidia.com/gpu"] = gpus;
  if (!flags.ib.empty()) {
    const bool is_resource = flags.ib.find('/') != std::string::npos && is_label({flags.ib, ""});
    if (!is_resource) {
      errors.push_back({"--ib", "is " + shown(Json(flags.ib)) +
                                    "; it must be the name of a resource, as in rdma/hca "
                                    "(`kubectl describe node` lists them)"});
    }
    limits[flags.ib] = 1;
    container["securityContext"] = {{"capabilities", {{"add", Json::array({"IPC_LOCK"})}}}};
  }
  if (!limits.empty()) container["resources"]["limits"] = std::move(limits);
}

Json container_of(const SubmitFlags& flags, std::vector<FieldError>& errors) {
  Json container = {{"name", "training"}, {"image", flags.image}};
  if (flags.image.empty())
    errors.push_back({"--image", "is missing; it must be the container image (or set TJ_IMAGE)"});
  if (Json env = read_env(flags.env, errors); !env.empty()) container["env"] = std::move(env);
  if (flags.image.find_first_of(" \t\n") != std::string::npos)
    errors.push_back({"--image", "is " + shown(Json(flags.image)) + "; it must have no spaces"});
  if (!flags.workdir.empty()) {
    container["workingDir"] = flags.workdir;
    if (!flags.workdir.starts_with('/'))
      errors.push_back(
          {"--workdir", "is " + shown(Json(flags.workdir)) + "; it must begin with /"});
  }
  add_resources(container, flags, errors);
  return container;
}

/// By the rules of a TrainingJob, in the words of the flags.
void check_result(const Json& job, std::vector<FieldError>& errors) {
  for (FieldError& error : validate_manifest(job)) {
    const auto flag = std::ranges::find_if(
        kFlagsOfFields, [&](const auto& entry) { return error.field.starts_with(entry.first); });
    if (flag != std::end(kFlagsOfFields)) error.field = flag->second;
    errors.push_back(std::move(error));
  }
}

Json manifest_of(const SubmitFlags& flags, Json pod, std::vector<FieldError>& errors) {
  Json job = {{"apiVersion", names::kApiVersion},
              {"kind", names::kKind},
              {"metadata", {{"name", flags.name}}},
              {"spec", Json::object()}};
  Json& worker = job["spec"]["replicaSpecs"]["Worker"];
  worker["replicas"] = read_number("--workers", flags.workers, field::kWorkers, errors);
  worker["template"]["spec"] = std::move(pod);
  if (Json labels = read_labels(flags.labels, errors); !labels.empty()) {
    job["metadata"]["labels"] = labels;
    worker["template"]["metadata"]["labels"] = std::move(labels);
  }
  if (!flags.port.empty()) {
    job["spec"]["masterPort"] = read_number("--port", flags.port, {.min = 1, .max = 65535}, errors);
  }
  return job;
}

}  // namespace

MadeJob make_job(const SubmitFlags& flags, const std::optional<Script>& script,
                 std::vector<FieldError>& errors) {
  MadeJob made;
  if (flags.name.empty())
    errors.push_back({"--name", "is missing; it must be the name of the job, as in --name taehv"});
  Json container = container_of(flags, errors);
  Volumes volumes = read_volumes(flags.mounts, flags.shm, errors);
  if (Json command = command_of(flags, script, errors); !command.empty())
    container["command"] = std::move(command);
  if (script) {
    made.config_map = config_map_of(flags.name, *script);
    mount_script(volumes, (*made.config_map)["metadata"]["name"], errors);
  }
  if (!volumes.mounts.empty()) container["volumeMounts"] = std::move(volumes.mounts);
  Json pod = {{"containers", Json::array({std::move(container)})}};
  if (!volumes.volumes.empty()) pod["volumes"] = std::move(volumes.volumes);
  made.job = manifest_of(flags, std::move(pod), errors);
  if (errors.empty()) check_result(made.job, errors);
  return made;
}

}  // namespace tj::submit
