#include "trainer/launch/slurm.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "trainer/launch/conventions.h"
#include "trainer/launch/hostlist.h"

namespace tj::trainer {
namespace {

// Numbers of steps that are none of srun's tasks (slurm/slurm.h, SLURM_INTERACTIVE_STEP and below).
constexpr std::array<std::string_view, 4> kShellSteps = {"4294967290", "4294967291", "4294967292",
                                                         "4294967293"};
constexpr int kPortBase = 15000;  // as PyTorch Lightning chooses it: a job has its own port

constexpr IntVar kTasks{
    .name = "SLURM_STEP_NUM_TASKS", .what = "the number of tasks of the step", .min = 1};
constexpr IntVar kNodes{
    .name = "SLURM_STEP_NUM_NODES", .what = "the number of nodes of the step", .min = 1};
constexpr IntVar kTask{.name = "SLURM_PROCID", .what = "the index of this task, from 0"};
constexpr IntVar kNode{.name = "SLURM_NODEID", .what = "the index of this node, from 0"};
constexpr IntVar kLocal{.name = "SLURM_LOCALID", .what = "the index of this task on its node"};
constexpr std::string_view kNodeList = "SLURM_STEP_NODELIST";
constexpr std::string_view kTasksPerNode = "SLURM_STEP_TASKS_PER_NODE";

/// Tasks on each node of the step; all must have as many.
Fact<int> tasks_per_node(EnvReader& env, const Fact<int>& tasks, const Fact<int>& nodes) {
  const auto text = env.text(kTasksPerNode, "the tasks of each node, as in 8(x2)");
  if (env.error()) return {1, std::string(kTasksPerNode)};
  const auto counts = expand_task_counts(text.value);
  if (!counts) {
    env.refuse(kTasksPerNode, counts.error().message);
    return {1, std::string(kTasksPerNode)};
  }
  const auto [least, most] = std::ranges::minmax(*counts);
  const bool fits = std::int64_t{least} * nodes.value == tasks.value &&
                    counts->size() == static_cast<std::size_t>(nodes.value);
  if (least != most) {
    env.refuse(kTasksPerNode, "is \"" + text.value +
                                  "\"; it must be the same on each node: srun --ntasks-per-node");
  } else if (!fits) {
    env.refuse(kTasksPerNode, "is \"" + text.value + "\" with " + nodes.origin + " " +
                                  std::to_string(nodes.value) + " and " + tasks.origin + " " +
                                  std::to_string(tasks.value) + "; it must make up both");
  }
  return {least, std::string(kTasksPerNode)};
}

MasterDefault master_of_step(const IdentityRequest& request, EnvReader& env,
                             const Fact<int>& nodes) {
  MasterDefault master{.addr = Fact<std::string>{}, .port = {kPortBase, ""}};
  const auto list = env.text(kNodeList, "the hosts of the step");
  const auto hosts = expand_hostlist(list.value);
  if (!hosts) {
    env.refuse(kNodeList, hosts.error().message);
  } else if (hosts->size() != static_cast<std::size_t>(nodes.value)) {
    env.refuse(kNodeList, "is \"" + list.value + "\", " + std::to_string(hosts->size()) +
                              " hosts, with " + nodes.origin + " " + std::to_string(nodes.value) +
                              "; they must be as many");
  } else {
    master.addr = {hosts->front(), "first host of " + std::string(kNodeList)};
  }
  const std::string job = request.lookup("SLURM_JOB_ID").value_or("");
  const auto tail = parse_int(
      "SLURM_JOB_ID", job.substr(job.size() - std::min<std::size_t>(4, job.size())), 0, 9999);
  if (!tail) {
    env.refuse("SLURM_JOB_ID", "is \"" + job + "\"; it must be a number");
    return master;
  }
  master.port = {kPortBase + *tail,
                 "computed: " + std::to_string(kPortBase) + " + end of SLURM_JOB_ID"};
  return master;
}

}  // namespace

SlurmSight look_for_slurm(const EnvLookup& lookup) {
  const auto job = lookup("SLURM_JOB_ID");
  if (!job) return {};
  const auto unusable = [&](const std::string& why) {
    return SlurmSight{.is_there = true, .has_tasks = false, .why = why};
  };
  const auto step = lookup("SLURM_STEP_ID");
  const std::string where = "SLURM job " + *job;
  if (!step) return unusable(where + " is an allocation without a step; srun starts its tasks");
  if (std::ranges::find(kShellSteps, *step) != kShellSteps.end())
    return unusable(where + ": this is a shell in the allocation; srun starts tasks");
  for (const std::string_view name :
       {kTasks.name, kNodes.name, kTask.name, kNode.name, kLocal.name, kNodeList, kTasksPerNode}) {
    if (!lookup(name)) return unusable(where + ": " + std::string(name) + " is not set");
  }
  if (lookup(kTasks.name) == "1") return unusable(where + ": step " + *step + " has one task");
  return {.is_there = true,
          .has_tasks = true,
          .why = "set: SLURM_STEP_ID (a task of step " + *job + "." + *step + ")"};
}

Identity follow_slurm(const IdentityRequest& request, EnvReader& env, Identity id) {
  const auto tasks = env.integer(kTasks);
  const auto task = env.integer(kTask);
  env.require_below(task, {.name = kTasks.name, .value = tasks.value});
  id.worker_count = env.integer(kNodes);
  id.worker_index = env.integer(kNode);
  env.require_below(id.worker_index, {.name = kNodes.name, .value = id.worker_count.value});
  const auto per_node = tasks_per_node(env, tasks, id.worker_count);
  const auto local = env.integer(kLocal);
  env.require_below(local, {.name = kTasksPerNode, .value = per_node.value});
  const bool is_worker = per_node.value == 1 && !request.is_process;
  if (is_worker) {
    const auto told = reconcile_world(env, id, env.nproc("NPROC_PER_NODE"));
    id.nproc = choose_nproc(request, env, told);
  } else {
    id.nproc = per_node;
    id.rank = task;
    id.local_rank = local;
    const IntVar cores{.name = "SLURM_CPUS_PER_TASK", .what = "the cores of a task", .min = 1};
    if (env.has(cores.name)) id.cores = env.integer(cores);
    env.require_same("WORLD_SIZE", tasks);
    env.require_same("RANK", task);
  }
  if (!is_worker && request.options.nproc.source == NprocChoice::Source::fixed) {
    env.refuse("--nproc", "is " + std::to_string(request.options.nproc.count) + " with " +
                              per_node.origin + " " + std::to_string(per_node.value) +
                              "; it must not be given: SLURM has started each process itself");
  }
  env.require_same("NNODES", id.worker_count);
  env.require_same("NODE_RANK", id.worker_index);
  const auto master = master_of_step(request, env, id.worker_count);
  id.master_addr = read_master_addr(env, "", master);
  id.master_port = read_master_port(env, "", master);
  const auto value = [&](const char* name) { return request.lookup(name).value_or("0"); };
  if (id.job_uid.value.empty()) {
    id.job_uid = {"slurm-" + value("SLURM_JOB_ID") + "-" + value("SLURM_STEP_ID"),
                  "SLURM_JOB_ID, SLURM_STEP_ID"};
    id.attempt = env.integer_or(
        {.name = "SLURM_RESTART_COUNT", .what = "how often the job was requeued"}, id.attempt);
  }
  if (!env.has("NODE_NAME") && env.has("SLURMD_NODENAME"))
    id.node_name = env.text("SLURMD_NODENAME", "the name of this node");
  return id;
}

}  // namespace tj::trainer
