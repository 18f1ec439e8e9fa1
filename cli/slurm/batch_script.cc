#include "cli/slurm/batch_script.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/plain_text.h"
#include "cli/slurm/batch_body.h"
#include "contract/launch_env.h"
#include "contract/names.h"
#include "contract/outcome.h"

namespace tj::slurm {
namespace {

constexpr int kLossGraceSeconds = 60;  // in which tasks notice by themselves that one is lost
constexpr std::string_view kWorkerEnd = "END_OF_WORKER";

// Exit codes as the operator takes them where no rule matches (docs/trainingjob.md).
constexpr std::string_view kBuiltInActions =
    R"(    64 | 65 | 78) echo fail ;;
    126 | 127) if [ "$attempt" = 0 ]; then echo fail; else echo restart; fi ;;
    75) echo restart_uncounted ;;
    132 | 133 | 134 | 135 | 136 | 139 | 159) echo restart ;;
    129 | 13[0-9] | 14[0-9] | 15[0-9] | 16[0-9] | 17[0-9] | 18[0-9] | 19[0-2]) echo restart_uncounted ;;
    *) echo restart ;;
)";
static_assert(exit_code::kUsage == 64 && exit_code::kBadData == 65 && exit_code::kBadConfig == 78 &&
              exit_code::kInterrupted == 75 && exit_code::kSignalBase == 128);

/// What a task is told that differs from those of others.
struct TaskVariable {
  std::string_view name;
  std::string_view from;  // a variable of SLURM
};
constexpr TaskVariable kOfWorker[] = {{"RANK", "SLURM_PROCID"},
                                      {"NODE_RANK", "SLURM_PROCID"},
                                      {"PET_NODE_RANK", "SLURM_PROCID"},
                                      {names::kEnvNodeName, "SLURMD_NODENAME"}};
constexpr TaskVariable kOfProcess[] = {
    {"RANK", "SLURM_PROCID"},       {"LOCAL_RANK", "SLURM_LOCALID"},
    {"GROUP_RANK", "SLURM_NODEID"}, {"NODE_RANK", "SLURM_NODEID"},
    {"WORLD_SIZE", "SLURM_NTASKS"}, {names::kEnvNodeName, "SLURMD_NODENAME"}};
// Of a process: torchrun's variables have no place beside LOCAL_RANK.
constexpr std::string_view kNotOfProcess[] = {"WORLD_SIZE", "PET_NNODES", "PET_NPROC_PER_NODE",
                                              "PET_MASTER_ADDR", "PET_MASTER_PORT"};

std::span<const TaskVariable> task_variables(const BatchJob& job) {
  if (job.tasks_per_node == 1) return kOfWorker;
  return kOfProcess;
}

std::string comments(const BatchJob& job) {
  std::string text = "#!/bin/bash\n# A batch script of SLURM, by tj slurm from " +
                     plain_line(job.made_from) + ". Submit it with: sbatch FILE\n";
  for (const std::string& note : job.notes) text += "# - " + plain_line(note) + "\n";
  return text;
}

std::string directives(const BatchJob& job) {
  std::string text;
  const auto ask = [&](const std::string& option) { text += "#SBATCH --" + option + "\n"; };
  ask("job-name=" + job.name);
  ask("nodes=" + std::to_string(job.node_count));
  ask("ntasks-per-node=" + std::to_string(job.tasks_per_node));
  if (job.gpus_per_node > 0) ask("gpus-per-node=" + std::to_string(job.gpus_per_node));
  if (job.cpus_per_node) {
    ask("cpus-per-task=" + std::to_string(std::max(1LL, *job.cpus_per_node / job.tasks_per_node)));
  } else {
    ask("exclusive");
  }
  if (job.memory_mib) ask("mem=" + std::to_string(*job.memory_mib) + "M");
  if (!job.memory_mib && !job.cpus_per_node) ask("mem=0");
  if (!job.time_limit.empty()) ask("time=" + job.time_limit);
  if (!job.partition.empty()) ask("partition=" + job.partition);
  if (!job.account.empty()) ask("account=" + job.account);
  if (job.is_held) ask("hold");
  ask("requeue");
  ask("open-mode=append");
  ask("signal=B:USR1@" + std::to_string(job.signal_seconds));
  ask("output=" + job.name + "-%j.log");
  for (const std::string& option : job.sbatch_options) text += "#SBATCH " + option + "\n";
  return text;
}

std::string_view word_of(FailureAction action) {
  switch (action) {
    case FailureAction::fail: return "fail";
    case FailureAction::restart_ignoring_budget: return "restart_uncounted";
    case FailureAction::restart:
    case FailureAction::exclude_node_and_restart: break;
  }
  return "restart";
}

std::string action_function(const BatchJob& job) {
  std::string text =
      "\n# What becomes of the job when a task has ended first with this exit code.\n"
      "action_of() {\n  # shellcheck disable=SC2221,SC2222\n  case $1 in\n";
  for (const ExitRule& rule : job.exit_rules) {
    std::string codes;
    for (const int code : rule.exit_codes)
      codes += (codes.empty() ? "" : " | ") + std::to_string(code);
    text.append("    ")
        .append(codes)
        .append(") echo ")
        .append(word_of(rule.action))
        .append(" ;;\n");
  }
  return text.append(kBuiltInActions).append("  esac\n}\n");
}

/// The launch contract, as far as all tasks are told the same.
std::string contract_function(const BatchJob& job) {
  LaunchEnv contract{.world_size = job.node_count,
                     .rank = 0,
                     .master_addr = "",
                     .master_port = names::kMasterPortDefault,
                     .nproc_per_node = job.nproc_per_node,
                     .job_name = job.name,
                     .job_namespace = job.ns,
                     .job_uid = "",
                     .attempt = 0};
  if (job.tasks_per_node > 1) contract.nproc_per_node = job.tasks_per_node;
  std::string text = "\n# The launch contract, which all tasks share.\nset_contract() {\n";
  const auto is_own = [&](const std::string& name) {
    return std::ranges::find(task_variables(job), name, &TaskVariable::name) !=
               task_variables(job).end() ||
           (job.tasks_per_node > 1 &&
            std::ranges::find(kNotOfProcess, name) != std::end(kNotOfProcess));
  };
  for (const EnvVar& variable : to_env(contract)) {
    if (is_own(variable.name)) continue;
    std::string value = shell_word(variable.value);
    if (variable.name.ends_with("MASTER_ADDR")) value = "$MASTER_ADDR";
    if (variable.name.ends_with("MASTER_PORT")) value = "$MASTER_PORT";
    if (variable.name == names::kEnvJobUid) value = "slurm-$SLURM_JOB_ID";
    if (variable.name == names::kEnvAttempt) value = "$attempt";
    text += variable.name == value.substr(1) && value[0] == '$'
                ? "  export " + variable.name + "\n"
                : "  export " + variable.name + "=" + value + "\n";
  }
  if (job.tasks_per_node > 1)
    text += "  export LOCAL_WORLD_SIZE=" + std::to_string(job.tasks_per_node) + "\n";
  return text + "}\n";
}

/// "FOLDER:PATH:ro,..." as both runtimes take it.
ShellText mount_list(const std::vector<Mount>& mounts) {
  ShellText list;
  const auto add = [&](const ShellText& text) {
    list.pieces.insert(list.pieces.end(), text.pieces.begin(), text.pieces.end());
  };
  for (const Mount& mount : mounts) {
    if (!list.pieces.empty()) add(ShellText(","));
    add(mount.folder);
    add(ShellText(":" + mount.path + (mount.is_read_only ? ":ro" : "")));
  }
  return list;
}

std::string option(const std::string& name, const ShellText& value) {
  return name + "=" + shell_word(value);
}

/// In front of the command, on the node.
std::string apptainer_words(const BatchJob& job) {
  std::string words = "apptainer exec";
  if (job.gpus_per_node > 0) words += " --nv";
  if (job.working_folder) words += " " + option("--pwd", *job.working_folder);
  if (!job.mounts.empty()) words += " " + option("--bind", mount_list(job.mounts));
  return words + " " + shell_word("docker://" + job.image) + " ";
}

std::string srun_options(const BatchJob& job) {
  std::string words;
  if (job.tasks_per_node == 1) {
    words = "--cpu-bind=none";  // one task has all cores of its node
  } else if (job.cpus_per_node) {
    // What srun has not taken from the job since SLURM 22.05.
    words =
        "--cpus-per-task=" + std::to_string(std::max(1LL, *job.cpus_per_node / job.tasks_per_node));
  }
  if (job.runtime == Runtime::pyxis) {
    words += " " + option("--container-image", ShellText(job.image));
    if (!job.mounts.empty()) words += " " + option("--container-mounts", mount_list(job.mounts));
    if (job.working_folder) words += " " + option("--container-workdir", *job.working_folder);
  }
  return words;
}

/// What each task does, as a shell of POSIX understands it: it may be that of an image.
std::string worker(const BatchJob& job) {
  std::string text = "export";
  for (const auto& [name, from] : task_variables(job))
    text.append(" ").append(name).append("=\"$").append(from).append("\"");
  text += "\n";
  for (const auto& [name, value] : job.env) text += "export " + assignment(name, value) + "\n";
  text += R"(echo "tj slurm: task $RANK on $NODE_NAME, run $)" + std::string(names::kEnvAttempt) +
          "\"\n";
  if (job.working_folder && job.runtime == Runtime::none)
    text += "cd -- " + shell_word(*job.working_folder) + " || exit 78\n";
  text += "exec ";
  if (job.runtime == Runtime::apptainer) text += apptainer_words(job);
  for (const ShellText& word : job.command)
    text += (&word == &job.command.front() ? "" : " ") + shell_word(word);
  return text + "\n";
}

/// A line that does not stand in `text`.
std::string end_of(const std::string& text) {
  std::string end(kWorkerEnd);
  while (("\n" + text).find("\n" + end + "\n") != std::string::npos) end += "_";
  return end;
}

std::string worker_variable(const BatchJob& job) {
  const std::string text = worker(job);
  const std::string end = end_of(text);
  return "\n# What each task does.\nIFS= read -r -d '' worker <<'" + end + "' || true\n" + text +
         end + "\n";
}

template <typename Texts>
std::string list(const std::string& name, const Texts& texts) {
  std::string line = name + "=(";
  for (const auto& text : texts) line += (line.ends_with("(") ? "" : " ") + shell_word(text);
  return line + ")\n";
}

std::string settings(const BatchJob& job) {
  const auto deadline = job.deadline ? job.deadline->count() : 0;
  return "\noutput=" + shell_word(job.output_folder) +
         "  # a folder for each job in it, with its logs\n" +
         "tasks_per_node=" + std::to_string(job.tasks_per_node) + "\n" +
         "log_name=" + (job.tasks_per_node == 1 ? "'worker-%t.log'" : "'rank-%t.log'") + "\n" +
         "restarts_max=" + std::to_string(job.restarts_max) +
         "  # after failures; stops from outside do not count\n" +
         "deadline_seconds=" + std::to_string(deadline) + "  # of all runs together; 0: none\n" +
         "signal_seconds=" + std::to_string(job.signal_seconds) + "\n" +
         "loss_grace_seconds=" + std::to_string(kLossGraceSeconds) + "\n" + "master_port=" +
         (job.master_port ? std::to_string(*job.master_port) : "''  # by the number of the job") +
         "\n" + list("needed_env", job.needed_env) + list("node_folders", job.node_folders) +
         "srun_options=(" + srun_options(job) + ")\n";
}

}  // namespace

bool is_set_for_tasks(std::string_view variable) {
  constexpr std::string_view kLocal[] = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
                                         "SLURM_JOB_ID"};
  const auto reserved = reserved_env_names();
  if (variable == names::kEnvPodIp) return false;
  return std::ranges::find(reserved, variable) != reserved.end() ||
         std::ranges::find(kLocal, variable) != std::end(kLocal);
}

std::string batch_script(const BatchJob& job) {
  return comments(job) + directives(job) + settings(job) + action_function(job) +
         contract_function(job) + worker_variable(job) + std::string(kBatchBody);
}

}  // namespace tj::slurm
