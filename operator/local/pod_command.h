// What a pod's container means as a local process: argument list, environment, working folder.
// Pure: it reads the pod's JSON and what is known of this machine, as kubelet does with an image
// and a node. Mounts: a process needs privileges to mount, so the paths are replaced instead. Each
// mountPath that stands at the start of a word, or after `=`, `:` or a quote, in command, args,
// values and workingDir becomes the folder behind it.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"

namespace tj {

/// A mount: what the container calls it, and the folder that takes its place here.
struct MountedFolder {
  std::string mount_path;
  std::string folder;
  bool operator==(const MountedFolder&) const = default;
};

/// What kubelet, DNS and the network would give to the pod.
struct LocalFacts {
  std::string node_name;
  std::string pod_ip = "127.0.0.1";
  int master_port = 0;  // takes the place of MASTER_PORT and PET_MASTER_PORT
  std::string
      volumes_folder;  // holds <pod>/<volume> of each emptyDir and claims/<claim> of each claim
  std::string manifest_folder;  // the working folder when the container's own does not exist here
  std::string termination_log;
  std::vector<std::string> path_folders;  // first in PATH
  std::vector<EnvVar> machine_env;        // takes the place of the image's environment
};

struct ProcessSpec {
  std::vector<std::string> argv;
  std::vector<EnvVar> env;
  std::string working_folder;  // as the container has it, mounts replaced; may not exist here
  std::vector<std::string> folders_to_make;
  bool operator==(const ProcessSpec&) const = default;
};

/// Fails with Code::invalid when a process can't take the container's place; the message says why
/// and what would help.
Result<ProcessSpec> local_process(const nlohmann::json& pod, const nlohmann::json& container,
                                  const LocalFacts& facts);

/// `$(NAME)` becomes the value of the last `known` of that name, `$$` becomes `$`, an unknown name
/// stays as it is. After k8s.io/kubernetes/third_party/forked/golang/expansion/expand.go.
std::string expand_references(std::string_view text, const std::vector<EnvVar>& known);

/// `mounts` may come in any order: the longest path wins.
std::string replace_mounts(std::string_view text, const std::vector<MountedFolder>& mounts);

/// The file that `command` names by the rules of execvp: with a slash as it is, else the first
/// executable in `path`. Empty: not found.
std::string find_program(const std::string& command, const std::string& path);

}  // namespace tj
