// What each fact about a machine means for a training on it.
#include <algorithm>

#include "trainer/check/machine.h"

namespace tj::trainer {
namespace {
using enum Severity;

constexpr std::uint64_t kShmDockerBytes = 64 << 20;     // what a container gets if nobody asks
constexpr std::uint64_t kShmForGpusBytes = 1ULL << 30;  // NCCL's buffers among GPUs of a node
constexpr std::uint64_t kMemoryPerProcessBytes = 1ULL << 30;
constexpr std::uint64_t kMemlockForVerbsBytes = 1ULL << 30;
constexpr std::uint64_t kDiskLowBytes = 1'000'000'000;
constexpr double kDiskSlowBytesPerSecond = 50e6;
constexpr double kGpuBusyShare = 0.1;

std::string count_text(std::uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Finding judge_interface(const MasterFacts& facts) {
  constexpr const char* kCheck = "interface";
  const std::string route = facts.interface + " (" + facts.address + ")";
  const bool is_other =
      !facts.gloo_interfaces.empty() && !facts.interface.empty() &&
      std::ranges::find(facts.gloo_interfaces, facts.interface) == facts.gloo_interfaces.end();
  if (is_other) {
    return {warn,
            kCheck,
            "GLOO_SOCKET_IFNAME=" + joined(facts.gloo_interfaces),
            "the route to the master is by " + route +
                ", and the others may not reach this one; without the variable that one is taken",
            {}};
  }
  return {pass, kCheck, route, "", {}};
}

Finding judge_shm(const MemoryFacts& facts, const Devices& devices) {
  constexpr const char* kCheck = "shared memory";
  constexpr const char* kRemedy =
      "a volume emptyDir with medium: Memory, mounted at /dev/shm, gives more (docker: --shm-size)";
  if (!facts.shm_bytes) return {warn, kCheck, "no /dev/shm", kRemedy, {}};
  const std::string found = size_text(static_cast<double>(*facts.shm_bytes)) + " in /dev/shm";
  if (*facts.shm_bytes <= kShmDockerBytes) {
    return {warn,
            kCheck,
            found,
            std::string("NCCL, and programs that load data in processes of their own, end with bus "
                        "errors or \"unhandled system error\" when it is full; ") +
                kRemedy,
            {}};
  }
  if (devices.gpus > 1 && *facts.shm_bytes < kShmForGpusBytes)
    return {warn,
            kCheck,
            found,
            std::string("NCCL wants about 1 GB for the GPUs of a node; ") + kRemedy,
            {}};
  return {pass, kCheck, found, "", {}};
}

Finding judge_memlock(const MemoryFacts& facts, const Devices& devices) {
  constexpr const char* kCheck = "memlock limit";
  if (!facts.memlock_bytes) return {pass, kCheck, "unlimited", "", {}};
  const std::string found = size_text(static_cast<double>(*facts.memlock_bytes));
  if (!devices.has_verbs)
    return {pass, kCheck, found, "enough: only adapters of InfiniBand and RoCE lock memory", {}};
  if (*facts.memlock_bytes >= kMemlockForVerbsBytes) return {pass, kCheck, found, "", {}};
  return {
      fatal,
      kCheck,
      found,
      "InfiniBand locks its buffers, and NCCL ends with \"unhandled system error\" (ibv_reg_mr: "
      "cannot allocate memory); `ulimit -l` must be unlimited, in a pod by the capability "
      "IPC_LOCK",
      {}};
}

Finding judge_free_memory(const CheckedWorker& worker, const MemoryFacts& facts) {
  constexpr const char* kCheck = "memory";
  std::optional<std::uint64_t> free = facts.available_bytes;
  std::string of = "of the machine";
  if (facts.group_limit_bytes) {
    const std::uint64_t used = facts.group_used_bytes.value_or(0);
    const std::uint64_t left = *facts.group_limit_bytes - std::min(used, *facts.group_limit_bytes);
    if (!free || left < *free) {
      free = left;
      of = "of the limit " + size_text(static_cast<double>(*facts.group_limit_bytes));
    }
  }
  if (!free)
    return {warn, kCheck, "not known", "neither /proc/meminfo nor a control group says", {}};
  const std::string found = size_text(static_cast<double>(*free)) + " free " + of;
  if (*free >= kMemoryPerProcessBytes * static_cast<std::uint64_t>(worker.processes))
    return {pass, kCheck, found, "", {}};
  return {warn,
          kCheck,
          found,
          "less than 1 GB for each of " +
              count_text(static_cast<std::uint64_t>(worker.processes), "process") +
              (worker.processes == 1 ? "" : "es") +
              ": the kernel kills what goes over the limit (exit code 137); a higher "
              "resources.limits.memory gives more",
          {}};
}

Finding judge_cores(const CheckedWorker& worker, const MemoryFacts& facts) {
  const std::string found = count_text(static_cast<std::uint64_t>(facts.cores), "core");
  if (facts.cores >= worker.processes) return {pass, "cores", found, "", {}};
  return {warn,
          "cores",
          found,
          "fewer than processes (" + std::to_string(worker.processes) +
              "): they take turns, and each collective waits for the slowest",
          {}};
}

}  // namespace

std::vector<Finding> judge_master(const CheckedWorker& worker, const MasterFacts& facts) {
  const std::string place = worker.master_host + ":" + std::to_string(worker.master_port);
  std::vector<Finding> findings;
  if (facts.error.empty()) {
    findings.push_back({pass, "master", place, "", {}});
    if (!facts.is_master_local) {
      findings.back() = {warn,
                         "master",
                         place,
                         "rank 0 runs here, but that address does not lead here: the others will "
                         "not find it; MASTER_ADDR must be a name of this machine",
                         {}};
    }
    findings.push_back(judge_interface(facts));
  } else {
    findings.push_back({retry,
                        "master",
                        place,
                        facts.error + "; the name is resolved again until the deadline: it needs a "
                                      "Service (or DNS entry) and a route from here",
                        {}});
  }
  if (!worker.has_rank_0) return findings;
  if (facts.port_error)
    findings.push_back(
        {retry, "port", std::to_string(worker.master_port), facts.port_error->message, {}});
  else
    findings.push_back({pass, "port", std::to_string(worker.master_port) + " is free", "", {}});
  return findings;
}

std::vector<Finding> judge_memory(const CheckedWorker& worker, const MemoryFacts& facts,
                                  const Devices& devices) {
  return {judge_shm(facts, devices), judge_memlock(facts, devices),
          judge_free_memory(worker, facts), judge_cores(worker, facts)};
}

std::vector<Finding> judge_adapters(const NetworkFacts& facts) {
  constexpr const char* kCheck = "InfiniBand";
  if (facts.ports.empty()) return {{pass, kCheck, "none: TCP", "", {}}};
  std::vector<Finding> findings;
  std::string active;
  for (const HcaPort& port : facts.ports) {
    const std::string name = port.device + ":" + std::to_string(port.port);
    if (port.is_active) {
      active +=
          (active.empty() ? "" : ", ") + name + " " + std::to_string(port.rate_gbps) + " Gb/s";
    } else {
      findings.push_back({warn,
                          kCheck,
                          name + " is down",
                          "a cable, a switch or a subnet manager is missing; training goes over "
                          "the others",
                          {}});
    }
  }
  if (active.empty()) return findings;
  if (facts.has_verbs) {
    findings.insert(findings.begin(), {pass, kCheck, active, "", {}});
  } else {
    findings.insert(findings.begin(),
                    {warn,
                     kCheck,
                     active,
                     "this container has no /dev/infiniband, so training goes over TCP; the "
                     "device plug-in of the cluster must give it (resources.limits rdma/...)",
                     {}});
  }
  return findings;
}

Finding judge_network(int workers, const NetworkUse& use) {
  if (workers == 1) return {pass, kNetworkCheck, "none: a single worker", "", {}};
  return {pass, kNetworkCheck, use.network + ": " + use.why, "", {}};
}

std::vector<Finding> judge_gpus(const GpusFacts& facts) {
  constexpr const char* kCheck = "GPUs";
  if (facts.visible == 0 && facts.gpus.empty())
    return {{pass, kCheck, "none is visible: training is on the CPU", "", {}}};
  const std::string visible =
      count_text(static_cast<std::uint64_t>(facts.visible), "GPU") + " visible";
  if (!facts.error.empty()) {
    return {{warn,
             kCheck,
             visible,
             facts.error + "; the container needs the NVIDIA runtime, else training is on the CPU",
             {}}};
  }
  std::vector<Finding> findings;
  findings.push_back({pass, kCheck, visible, "", {}});
  if (!facts.gpus.empty()) {
    findings.back().found += ", " + facts.gpus.front().name + ", " +
                             size_text(static_cast<double>(facts.gpus.front().memory_bytes)) +
                             " each";
  }
  for (std::size_t index = 0; index < facts.gpus.size(); ++index) {
    const GpuFacts& gpu = facts.gpus[index];
    const std::string name = "GPU " + std::to_string(index);
    if (gpu.uncorrected_errors > 0)
      findings.push_back({warn,
                          kCheck,
                          name + ": " + count_text(gpu.uncorrected_errors, "uncorrected ECC error"),
                          "it may end or spoil the run; it needs a reset, or another node",
                          {}});
    const auto busy = static_cast<double>(gpu.used_bytes);
    if (busy > kGpuBusyShare * static_cast<double>(gpu.memory_bytes))
      findings.push_back({warn,
                          kCheck,
                          name + ": " + size_text(busy) + " in use",
                          "another process holds it, and training may run out of memory",
                          {}});
    if (gpu.name != facts.gpus.front().name)
      findings.push_back({warn,
                          kCheck,
                          name + " is " + gpu.name,
                          "each step takes as long as the slowest GPU",
                          {}});
  }
  if (!facts.without_peer_access.empty())
    findings.push_back({warn,
                        kCheck,
                        "no peer access: " + joined(facts.without_peer_access),
                        "these talk through /dev/shm, much slower than NVLink",
                        {}});
  return findings;
}

std::vector<Finding> judge_disk(const DiskFacts& facts) {
  constexpr const char* kCheck = "checkpoint folder";
  if (!facts.error.empty()) {
    return {{fatal,
             kCheck,
             facts.path,
             facts.error + (facts.is_full ? "; it needs space for every checkpoint that is kept"
                                          : "; --out must be a folder that can be written"),
             {}}};
  }
  const auto free = static_cast<double>(facts.free_bytes);
  const double speed = static_cast<double>(facts.written_bytes) / std::max(facts.seconds, 1e-6);
  const std::string found =
      facts.path + ": " + size_text(free) + " free, " + size_text(speed) + "/s";
  if (facts.free_bytes < kDiskLowBytes)
    return {{warn,
             kCheck,
             found,
             "a checkpoint takes 12 bytes for each parameter, 1.5 GB for 124 million",
             {}}};
  if (speed < kDiskSlowBytesPerSecond) {
    return {{warn,
             kCheck,
             found,
             "a checkpoint of 1.5 GB (124 million parameters) takes " +
                 duration_text(1.5e9 / speed) + ", and the next one waits for it",
             {}}};
  }
  return {{pass, kCheck, found, "", {}}};
}

Finding judge_path(const PathFacts& facts) {
  const std::string check = facts.from + (facts.from.starts_with("-") ? "" : " (path)");
  if (!facts.error.empty()) {
    return {fatal,
            check,
            facts.path,
            facts.error + "; it must be there on every node, with the right to read it",
            {}};
  }
  if (facts.is_folder && facts.entries == 0)
    return {fatal, check, facts.path, "is an empty folder: is the volume mounted?", {}};
  return {pass,
          check,
          facts.path + (facts.is_folder ? ": " + count_text(facts.entries, "file") : ""),
          "",
          {}};
}

}  // namespace tj::trainer
