#include "operator/local/pod_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "contract/names.h"
#include "operator/api/field.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using namespace read;
using Json = nlohmann::json;

Error invalid(std::string subject, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = std::move(subject),
               .retry_after = {}};
}

/// Replaces an earlier variable of that name: the last one counts, and stands where it was written
/// last.
void set_variable(std::vector<EnvVar>& env, const std::string& name, const std::string& value) {
  std::erase_if(env, [&](const EnvVar& known) { return known.name == name; });
  env.push_back({name, value});
}

/// `metadata.labels['key']` and the like; absent when it is another field.
std::optional<std::string> keyed_field(const Json& pod, const std::string& path) {
  for (const char* map : {"labels", "annotations"}) {
    const std::string prefix = std::string("metadata.") + map + "['";
    if (!path.starts_with(prefix) || !path.ends_with("']")) continue;
    const std::string key = path.substr(prefix.size(), path.size() - prefix.size() - 2);
    return string_at(object_at(object_at(pod, "metadata"), map), key);
  }
  return std::nullopt;
}

Result<std::string> field_value(const Json& pod, const std::string& path, const LocalFacts& facts) {
  const Json& meta = object_at(pod, "metadata");
  if (path == "metadata.name") return string_at(meta, "name");
  if (path == "metadata.namespace") return string_at(meta, "namespace");
  if (path == "metadata.uid") return string_at(meta, "uid");
  if (path == "spec.nodeName") return facts.node_name;
  if (path == "spec.serviceAccountName") return std::string("default");
  const bool is_ip = path == "status.podIP" || path == "status.podIPs" || path == "status.hostIP";
  if (is_ip) return facts.pod_ip;
  if (const auto value = keyed_field(pod, path)) return *value;
  return invalid("fieldRef",
                 "\"" + path + "\" is no field of a pod that can be read into a variable");
}

Result<std::string> variable_value(const Json& pod, const Json& variable, const LocalFacts& facts) {
  const Json& from = object_at(variable, "valueFrom");
  const std::string name = string_at(variable, "name");
  if (from.contains("fieldRef"))
    return field_value(pod, string_at(from["fieldRef"], "fieldPath"), facts);
  const std::string source = from.empty() ? "nothing" : from.begin().key();
  return invalid("env " + name,
                 "its value comes from " + source +
                     ", which local processes do not have; give a value, or a fieldRef");
}

/// What the job's DNS name and Service port stand for on one machine.
std::string local_value(const std::string& name, const std::string& value,
                        const LocalFacts& facts) {
  if (name == "MASTER_ADDR" || name == "PET_MASTER_ADDR") return facts.pod_ip;
  if (name == "MASTER_PORT" || name == "PET_MASTER_PORT") return std::to_string(facts.master_port);
  return value;
}

Result<std::vector<EnvVar>> container_env(const Json& pod, const Json& container,
                                          const LocalFacts& facts) {
  std::vector<EnvVar> env;
  for (const Json& variable : array_at(container, "env")) {
    const std::string name = string_at(variable, "name");
    if (!value_at(variable, "valueFrom").is_null()) {
      auto value = variable_value(pod, variable, facts);
      if (!value) return value.error();
      set_variable(env, name, *value);
    } else {
      set_variable(env, name,
                   expand_references(local_value(name, string_at(variable, "value"), facts), env));
    }
  }
  return env;
}

/// One part of a path, and no way out of its folder.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

/// Kubernetes asks the same of a subPath (pkg/apis/core/validation, validateLocalDescendingPath).
bool descends(const std::filesystem::path& sub_path) {
  return sub_path.is_relative() && std::ranges::find(sub_path, "..") == sub_path.end();
}

Result<std::string> volume_folder(const Json& pod, const std::string& volume_name,
                                  const LocalFacts& facts) {
  for (const Json& volume : array_at(object_at(pod, "spec"), "volumes")) {
    if (string_at(volume, "name") != volume_name) continue;
    const auto own_folder = [&](const std::string& parent,
                                const std::string& name) -> Result<std::string> {
      if (is_file_name(name)) return facts.volumes_folder + "/" + parent + "/" + name;
      return invalid("volume " + volume_name, "\"" + name + "\" can't be the name of a folder");
    };
    if (volume.contains("hostPath")) return string_at(volume["hostPath"], "path");
    if (volume.contains("emptyDir"))
      return own_folder(string_at(object_at(pod, "metadata"), "name"), volume_name);
    if (volume.contains("persistentVolumeClaim"))
      return own_folder("claims", string_at(volume["persistentVolumeClaim"], "claimName"));
    return invalid("volume " + volume_name,
                   "local processes have emptyDir, hostPath and persistentVolumeClaim only; it is "
                   "none of them");
  }
  return invalid("volumeMount " + volume_name, "there is no volume of that name in spec.volumes");
}

Result<std::vector<MountedFolder>> mounts_of(const Json& pod, const Json& container,
                                             const LocalFacts& facts) {
  std::vector<MountedFolder> mounts;
  for (const Json& mount : array_at(container, "volumeMounts")) {
    auto folder = volume_folder(pod, string_at(mount, "name"), facts);
    if (!folder) return folder.error();
    const std::string sub_path = string_at(mount, "subPath");
    if (!descends(sub_path)) {
      return invalid("volumeMount " + string_at(mount, "name"),
                     "its subPath is \"" + sub_path + "\"; it must be relative, without \"..\"");
    }
    std::string path = string_at(mount, "mountPath");
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    mounts.push_back({path, sub_path.empty() ? *folder : *folder + "/" + sub_path});
  }
  return mounts;
}

bool starts_path(std::string_view text, std::size_t at) {
  return at == 0 ||
         std::string_view(" \t\n=:'\"`(,;|&<>").find(text[at - 1]) != std::string_view::npos;
}
bool ends_path(std::string_view text, std::size_t at) {
  return at >= text.size() ||
         std::string_view("/ \t\n:'\"`),;|&<>").find(text[at]) != std::string_view::npos;
}

std::string path_with_folders(const LocalFacts& facts) {
  std::string path;
  for (const std::string& folder : facts.path_folders) path += folder + ":";
  for (const EnvVar& variable : facts.machine_env) {
    if (variable.name == "PATH") return path + variable.value;
  }
  return path + "/usr/local/bin:/usr/bin:/bin";
}

/// The machine's variables first, as an image's are; then the container's in the order of the
/// manifest. What another launcher left in the shell must not reach a worker.
std::vector<EnvVar> whole_env(const std::vector<EnvVar>& own, const LocalFacts& facts) {
  constexpr std::array<std::string_view, 8> kLaunchers = {
      "RANK",      "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "LOCAL_WORLD_SIZE",
      "ROLE_RANK", "NODE_RANK",  "NNODES"};
  std::vector<EnvVar> env;
  for (const EnvVar& variable : facts.machine_env) {
    const bool of_launcher =
        variable.name.starts_with("PET_") || variable.name.starts_with("TORCHELASTIC_") ||
        std::find(kLaunchers.begin(), kLaunchers.end(), variable.name) != kLaunchers.end();
    if (!of_launcher) set_variable(env, variable.name, variable.value);
  }
  set_variable(env, "PATH", path_with_folders(facts));
  set_variable(env, names::kEnvTerminationLog, facts.termination_log);
  for (const EnvVar& variable : own) set_variable(env, variable.name, variable.value);
  return env;
}

}  // namespace

std::string expand_references(std::string_view text, const std::vector<EnvVar>& known) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const bool may_refer = text[at] == '$' && at + 1 < text.size();
    if (!may_refer) {
      result += text[at++];
      continue;
    }
    const auto end = text[at + 1] == '(' ? text.find(')', at + 2) : std::string_view::npos;
    if (text[at + 1] == '$') {
      result += '$';
      at += 2;
    } else if (end == std::string_view::npos) {
      result += text.substr(at, 2);
      at += 2;
    } else {
      const std::string_view name = text.substr(at + 2, end - at - 2);
      const auto found = std::find_if(known.rbegin(), known.rend(), [&](const EnvVar& variable) {
        return variable.name == name;
      });
      result += found != known.rend() ? found->value : std::string(text.substr(at, end + 1 - at));
      at = end + 1;
    }
  }
  return result;
}

std::string replace_mounts(std::string_view text, const std::vector<MountedFolder>& mounts) {
  std::string result;
  std::size_t at = 0;
  while (at < text.size()) {
    const MountedFolder* best = nullptr;
    for (const MountedFolder& mount : mounts) {
      const std::string& path = mount.mount_path;
      const bool here = path.size() > 1 && starts_path(text, at) &&
                        text.substr(at).starts_with(path) && ends_path(text, at + path.size());
      if (here && (best == nullptr || path.size() > best->mount_path.size())) best = &mount;
    }
    if (best == nullptr) {
      result += text[at++];
    } else {
      result += best->folder;
      at += best->mount_path.size();
    }
  }
  return result;
}

std::string find_program(const std::string& command, const std::string& path) {
  if (command.find('/') != std::string::npos) return command;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const auto end = std::min(path.find(':', begin), path.size());
    std::string candidate = path.substr(begin, end - begin) + "/" + command;
    std::error_code ignored;
    const bool runs = std::filesystem::is_regular_file(candidate, ignored) &&
                      access(candidate.c_str(), X_OK) == 0;
    if (runs && end > begin) return candidate;
    begin = end + 1;
  }
  return "";
}

Result<ProcessSpec> local_process(const Json& pod, const Json& container, const LocalFacts& facts) {
  const std::string own_name = string_at(container, "name");
  const std::string name = "container " + own_name;
  if (!is_file_name(own_name))
    return invalid(name, "\"" + own_name + "\" can't be the name of a file");
  for (const char* list : {"command", "args"}) {
    const Json& words = value_at(container, list);
    if (!words.is_null() && !words.is_array()) {
      return invalid(name,
                     std::string(list) + " must be a list of texts; it is " + field::shown(words));
    }
  }
  if (array_at(container, "command").empty()) {
    return invalid(name,
                   "it has no command: here is no image whose entrypoint could run; set command");
  }
  if (!array_at(container, "envFrom").empty()) {
    return invalid(name,
                   "envFrom needs ConfigMaps or Secrets, which local processes do not have; list "
                   "the variables in env");
  }
  auto env = container_env(pod, container, facts);
  if (!env) return env.error();
  const auto mounts = mounts_of(pod, container, facts);
  if (!mounts) return mounts.error();
  ProcessSpec spec;
  for (const char* list : {"command", "args"}) {
    for (const Json& word : array_at(container, list)) {
      if (!word.is_string())
        return invalid(name, std::string(list) + " must be a list of texts; " + field::shown(word) +
                                 " is none");
      spec.argv.push_back(
          replace_mounts(expand_references(word.get<std::string>(), *env), *mounts));
    }
  }
  for (EnvVar& variable : *env) variable.value = replace_mounts(variable.value, *mounts);
  spec.env = whole_env(*env, facts);
  spec.working_folder = replace_mounts(string_at(container, "workingDir"), *mounts);
  for (const MountedFolder& mount : *mounts) {
    if (mount.folder.starts_with(facts.volumes_folder + "/"))
      spec.folders_to_make.push_back(mount.folder);
  }
  return spec;
}

}  // namespace tj
