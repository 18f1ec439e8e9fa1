// A job as a batch script of SLURM starts it: what sbatch is asked for, and what runs on each node.
// Plain values; where they come from is batch_flags.h and from_manifest.h, what becomes of them
// batch_script.h.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/slurm/shell_text.h"
#include "operator/api/types.h"

namespace tj::slurm {

inline constexpr int kSignalSecondsDefault = 120;

/// What runs the image on a node.
enum class Runtime { none, apptainer, pyxis };

/// A folder of the nodes, at `path` in the container.
struct Mount {
  ShellText folder;
  std::string path;
  bool is_read_only = false;
};

/// Exit codes of a worker (128+n for signal n), and what follows.
struct ExitRule {
  FailureAction action = FailureAction::restart;
  std::vector<int> exit_codes;
};

struct BatchJob {
  std::string made_from;  // "job.yaml"; for the comment at the top
  std::vector<std::string> notes;

  // For sbatch. Texts are checked by whoever sets them: they have no letter that means something
  // in a line of sbatch.
  std::string name;
  int node_count = 1;
  int tasks_per_node = 1;  // 1: a worker, which starts its processes itself; else processes
  int gpus_per_node = 0;
  std::optional<long long> cpus_per_node;      // absent: the nodes are the job's alone
  std::optional<long long> memory_mib;         // of a node
  std::string time_limit;                      // of one run; empty: the partition's
  int signal_seconds = kSignalSecondsDefault;  // before the time limit
  std::string partition;
  std::string account;
  std::vector<std::string> sbatch_options;  // further ones, as they are
  bool is_held = false;
  std::string output_folder;

  // What the operator does in a cluster.
  std::string ns = "default";
  std::optional<int> master_port;     // absent: by the job's number
  std::optional<int> nproc_per_node;  // absent: auto
  int restarts_max = 3;
  std::vector<ExitRule> exit_rules;
  std::optional<std::chrono::seconds> deadline;  // of all runs together

  // What runs on a node.
  Runtime runtime = Runtime::none;
  std::string image;
  std::vector<Mount> mounts;            // of a runtime
  std::vector<ShellText> node_folders;  // made on each node before, and removed at the end
  std::vector<std::string> needed_env;  // variables that sbatch must be given
  std::vector<std::pair<std::string, ShellText>> env;
  std::optional<ShellText> working_folder;
  std::vector<ShellText> command;  // never empty
};

/// Variables of the launch contract that the script sets for each task.
bool is_set_for_tasks(std::string_view variable);

}  // namespace tj::slurm
