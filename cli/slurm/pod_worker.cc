#include "cli/slurm/pod_worker.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/plain_text.h"
#include "cli/slurm/quantity.h"
#include "contract/names.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj::slurm {
namespace {

using field::child;
using field::Field;
using field::item;
using Json = nlohmann::json;

constexpr const char* kGpus[] = {"nvidia.com/gpu", "amd.com/gpu"};
constexpr std::string_view kTakenResources[] = {"cpu", "memory", "nvidia.com/gpu", "amd.com/gpu"};
constexpr LeftOutField kOfResources[] = {
    {"ephemeral-storage", "--sbatch=--tmp=MB asks for room in the nodes' /tmp"},
};
constexpr std::string_view kTakenOfContainer[] = {
    "name", "image", "command", "args", "env", "workingDir", "resources", "volumeMounts"};
constexpr const char* kNoProbes =
    "nobody asks a task of SLURM; the trainer ends by itself when "
    "it stands still, other programs need a limit of their own";
constexpr LeftOutField kOfContainer[] = {
    {"envFrom", "the variables must be in the environment of sbatch"},
    {"ports", "nobody publishes a task's ports"},
    {"livenessProbe", kNoProbes},
    {"readinessProbe", kNoProbes},
    {"startupProbe", kNoProbes},
    {"lifecycle", "do it in the command"},
    {"imagePullPolicy", "the container runtime has its own"},
    {"terminationMessagePath", "the exit code and the logs tell how a task ended"},
    {"terminationMessagePolicy", "the exit code and the logs tell how a task ended"},
    {"securityContext", "tasks run as the person who submits the job"},
    {"stdin", "tasks have no input"},
    {"tty", "tasks have no terminal"},
    {"restartPolicy", "a task is not restarted alone"},
    {"volumeDevices", "devices are those of the node"},
};
constexpr std::string_view kTakenOfMount[] = {"name", "mountPath", "readOnly", "subPath"};
constexpr LeftOutField kOfMount[] = {
    {"subPathExpr", "write the folder into --volume NAME=FOLDER"},
};

bool is_part(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

bool descends(const std::filesystem::path& path) {
  return path.is_relative() && std::ranges::find(path, "..") == path.end();
}

/// `$(NAME)` in a folder means nothing.
std::string without_references(std::string folder) {
  for (auto at = folder.find('$'); at != std::string::npos; at = folder.find('$', at + 2))
    folder.insert(at, "$");
  return folder;
}

std::string quantity_of(const Field& container, const char* list, const char* resource) {
  return tj::quantity_of(*container.value, list, resource);
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (without_controls(line) != line) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

bool add_resume(std::vector<ShellText>& command) {
  const auto is_word = [](const ShellText& word, std::string_view text) {
    return word == ShellText(text);
  };
  const auto is_trainer = [](const ShellText& word) {
    return word.pieces.size() == 1 && !word.pieces[0].is_variable &&
           std::filesystem::path(word.pieces[0].text).filename() == "trainer";
  };
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!is_trainer(command[i - 1]) || !is_word(command[i], "train")) continue;
    const auto behind = command.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::any_of(behind, command.end(),
                    [&](const auto& word) { return is_word(word, "--resume"); }))
      return false;
    command.insert(behind, ShellText("--resume"));
    return true;
  }
  return false;
}

ShellText PodWorker::text_of(const Field& field, const std::string& text) {
  if (!is_printable(text))
    checker_.add(field, "has a control letter, which a batch script can't show");
  const auto is_known = [this](std::string_view name) {
    const auto is_earlier = [&](const auto& variable) { return variable.first == name; };
    return is_set_for_tasks(name) || std::ranges::any_of(job_.env, is_earlier) ||
           std::ranges::find(job_.needed_env, name) != job_.needed_env.end();
  };
  return with_references(replace_mounts(text, replaced_), is_known);
}

void PodWorker::take(const Field& pod_template) {
  const Field metadata = child(pod_template, "metadata");
  const Field pod = child(pod_template, "spec");
  const Field container = item(child(pod, "containers"), 0);
  const Field image = child(container, "image");
  job_.image = read::text_of(image.value != nullptr ? *image.value : Json());
  if (place_.runtime == Runtime::none && image.value != nullptr)
    left_out_.leave_out(image, "no --container is named; the programs are those of the nodes");
  if (place_.runtime != Runtime::none && (job_.image.empty() || !is_printable(job_.image)))
    checker_.add(image, "must be the image that --container runs");
  take_resources(container);
  take_mounts(pod, container);
  take_env(container, metadata);
  take_command(container);
  left_out_.leave_out_rest(container, kTakenOfContainer, kOfContainer);
}

void PodWorker::take_resources(const Field& container) {
  for (const char* gpu : kGpus) {
    const std::string quantity = quantity_of(container, "limits", gpu);
    const auto count = quantity.empty() ? std::optional(0LL) : whole_units(quantity);
    if (count && *count <= 1024)
      job_.gpus_per_node += static_cast<int>(quantity == "0" ? 0 : *count);
  }
  const Field resources = child(container, "resources");
  const auto asked = [&](const char* resource, auto whole) -> std::optional<long long> {
    for (const char* list : {"requests", "limits"}) {
      const std::string quantity = quantity_of(container, list, resource);
      if (quantity.empty()) continue;
      const auto count = whole(quantity);
      if (!count) checker_.add(child(child(resources, list), resource), "is no quantity");
      return count;
    }
    return std::nullopt;
  };
  job_.cpus_per_node = asked("cpu", whole_units);
  job_.memory_mib = asked("memory", whole_mebibytes);
  if (!job_.cpus_per_node)
    left_out_.note(container.path +
                   ".resources.requests.cpu is missing: the job has its nodes "
                   "for itself (--exclusive)");
  for (const char* list : {"limits", "requests"}) {
    const Field of_list = child(resources, list);
    if (of_list.value == nullptr || !of_list.value->is_object()) continue;
    left_out_.leave_out_rest(of_list, kTakenResources, kOfResources);
    for (const char* resource : {"cpu", "memory"}) {
      const bool is_beside = std::string_view(list) == "limits" &&
                             !quantity_of(container, "requests", resource).empty() &&
                             quantity_of(container, "requests", resource) !=
                                 quantity_of(container, "limits", resource);
      if (is_beside && child(of_list, resource).value != nullptr)
        left_out_.leave_out(child(of_list, resource),
                            "what is requested is what SLURM is asked for");
    }
  }
}

void PodWorker::take_mounts(const Field& pod, const Field& container) {
  const Field mounts = child(container, "volumeMounts");
  if (!checker_.check_list(mounts, {.min = 0, .max = 1000}, "mounts")) return;
  if (mounts.value == nullptr) return;
  for (std::size_t i = 0; i < mounts.value->size(); ++i) take_mount(pod, item(mounts, i));
}

/// With `$$` for `$`, as text_of() reads it; empty: it is left out, and said.
std::string PodWorker::folder_of(const Field& pod, const Field& mount) {
  const std::string name = read::string_at(*mount.value, "name");
  if (const auto chosen = place_.volumes.find(name); chosen != place_.volumes.end())
    return without_references(chosen->second);
  const std::string instead =
      "; --volume " + plain_line(name) + "=FOLDER names a folder of the nodes";
  const Field volumes = child(pod, "volumes");
  const bool is_list = volumes.value != nullptr && volumes.value->is_array();
  for (std::size_t i = 0; is_list && i < volumes.value->size(); ++i) {
    const Field volume = item(volumes, i);
    if (read::string_at(*volume.value, "name") != name) continue;
    if (const Field host = child(volume, "hostPath"); host.value != nullptr)
      return without_references(read::string_at(*host.value, "path"));
    const Field empty = child(volume, "emptyDir");
    if (empty.value == nullptr || !is_part(name)) {
      left_out_.leave_out(mount, "its volume is none that a node of SLURM has" + instead);
      return "";
    }
    if (read::string_at(*empty.value, "medium") == "Memory" &&
        read::string_at(*mount.value, "mountPath") == "/dev/shm") {
      left_out_.leave_out(mount, "it is the node's own /dev/shm");
      return "";
    }
    left_out_.note(volume.path + ".emptyDir is /tmp/tj-JOB-" + plain_line(name) +
                   " on each node, and stays there only until the job has succeeded" + instead);
    ShellText folder("/tmp/tj-");
    folder.pieces.push_back({.text = "SLURM_JOB_ID", .is_variable = true});
    folder.pieces.push_back({.text = "-" + name, .is_variable = false});
    job_.node_folders.push_back(std::move(folder));
    return "/tmp/tj-$(SLURM_JOB_ID)-" + without_references(name);
  }
  checker_.add(mount,
               "names the volume \"" + plain_line(name) + "\", which is not in spec.volumes");
  return "";
}

void PodWorker::take_mount(const Field& pod, const Field& mount) {
  if (!checker_.check_object(mount, "a mount") || mount.value == nullptr) return;
  left_out_.leave_out_rest(mount, kTakenOfMount, kOfMount);
  std::string path = read::string_at(*mount.value, "mountPath");
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string sub_path = read::string_at(*mount.value, "subPath");
  if (!descends(sub_path)) return checker_.add(mount, "has a subPath that leaves its volume");
  std::string folder = folder_of(pod, mount);
  if (folder.empty()) return;
  if (!sub_path.empty()) folder += "/" + without_references(sub_path);
  if (!is_printable(folder) || !is_printable(path))
    return checker_.add(mount, "has a control letter, which a batch script can't show");
  if (place_.runtime == Runtime::none) {
    replaced_.push_back({path, folder});
    const std::string shown = with_references(folder, [](auto) { return false; }).pieces[0].text;
    if (path != shown)
      left_out_.note(mount.path + " (" + plain_line(path) +
                     "): without a --container nothing is mounted; where a word of the command, a "
                     "variable or workingDir begins so, it is " +
                     plain_line(shown));
    return;
  }
  if ((folder + path).find_first_of(":,") != std::string::npos)
    return checker_.add(mount, "has a \":\" or \",\" in a path, which --container can't mount");
  const Field read_only = child(mount, "readOnly");
  job_.mounts.push_back({.folder = with_references(folder, is_set_for_tasks),
                         .path = path,
                         .is_read_only = read_only.value != nullptr && *read_only.value == true});
}

void PodWorker::take_env(const Field& container, const Field& metadata) {
  const Field env = child(container, "env");
  if (!checker_.check_list(env, {.min = 0, .max = 10'000}, "variables")) return;
  if (env.value == nullptr) return;
  for (std::size_t i = 0; i < env.value->size(); ++i) take_variable(item(env, i), metadata);
}

void PodWorker::take_variable(const Field& variable, const Field& metadata) {
  if (!checker_.check_object(variable, "a name and a value") || variable.value == nullptr) return;
  const std::string name = read::string_at(*variable.value, "name");
  if (!is_variable_name(name))
    return left_out_.leave_out(variable, "a shell can't set a variable of this name");
  if (child(variable, "valueFrom").value != nullptr) return take_source(variable, metadata);
  // The last one of a name counts, also for those behind it.
  auto value = text_of(child(variable, "value"), read::string_at(*variable.value, "value"));
  job_.env.emplace_back(name, std::move(value));
}

void PodWorker::take_source(const Field& variable, const Field& metadata) {
  const std::string name = read::string_at(*variable.value, "name");
  const Field from = child(variable, "valueFrom");
  for (const char* kind : {"secretKeyRef", "configMapKeyRef"}) {
    const Field reference = child(from, kind);
    if (reference.value == nullptr) continue;
    const bool is_needed = !read::bool_at(*reference.value, "optional");
    left_out_.leave_out(reference, name + (is_needed ? " must be" : " is that, if there is one,") +
                                       " in the environment of sbatch");
    if (is_needed) job_.needed_env.push_back(name);
    return;
  }
  const std::string path = read::string_at(read::object_at(*from.value, "fieldRef"), "fieldPath");
  const auto set = [&](ShellText value) { job_.env.emplace_back(name, std::move(value)); };
  if (path == "metadata.name") {
    ShellText pod(job_.name + "-worker-");
    pod.pieces.push_back({.text = "RANK", .is_variable = true});
    return set(pod);
  }
  if (path == "metadata.namespace") return set(ShellText(job_.ns));
  if (path == "spec.nodeName") return set(ShellText::variable(names::kEnvNodeName));
  for (const char* map : {"labels", "annotations"}) {
    const std::string prefix = std::string("metadata.") + map + "['";
    if (!path.starts_with(prefix) || !path.ends_with("']")) continue;
    const std::string key = path.substr(prefix.size(), path.size() - prefix.size() - 2);
    const Json& texts = metadata.value == nullptr ? Json() : read::object_at(*metadata.value, map);
    std::string value = read::string_at(texts, key);
    if (!is_printable(value)) value.clear();
    return set(ShellText(value));
  }
  left_out_.leave_out(from, "a task of SLURM has nothing like it");
}

void PodWorker::take_command(const Field& container) {
  for (const char* list : {"command", "args"}) {
    const Field words = child(container, list);
    if (words.value == nullptr) continue;
    if (!checker_.check_list(words, {.min = 0, .max = 10'000}, "texts")) continue;
    for (std::size_t i = 0; i < words.value->size(); ++i) {
      const Field word = item(words, i);
      if (!word.value->is_string()) {
        checker_.add(word, "is " + field::shown(*word.value) + "; it must be a text");
        continue;
      }
      job_.command.push_back(text_of(word, word.value->get<std::string>()));
    }
  }
  const Field command = child(container, "command");
  if (command.value == nullptr || !command.value->is_array() || command.value->empty())
    checker_.add(command, "is missing; it must be given, as nothing here reads what an image runs");
  if (const Field folder = child(container, "workingDir"); folder.value != nullptr)
    job_.working_folder = text_of(folder, read::text_of(*folder.value));
  if (add_resume(job_.command))
    left_out_.note(
        "--resume is added to trainer train: the job goes on when it comes back from "
        "the queue");
}

}  // namespace tj::slurm
