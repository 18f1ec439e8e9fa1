// What one machine offers to a training, as facts, and what each fact means. Facts are read by
// machine_facts.cc and gpu_facts.cc; the judges are pure, so that a table of facts tests them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/check/finding.h"
#include "trainer/launch/host.h"
#include "trainer/network/network.h"

namespace tj::trainer {

/// What the judges must know of the worker.
struct CheckedWorker {
  int processes = 1;  // of this worker
  bool has_rank_0 = true;
  int master_port = 0;
  std::string master_host;
};

/// The way to the master.
struct MasterFacts {
  std::string error;            // why there is no address of the route: a name, a route
  std::string address;          // of this machine, towards the master
  std::string interface;        // that carries it
  bool is_master_local = true;  // the master's address is one of this machine
  std::vector<std::string> gloo_interfaces;  // GLOO_SOCKET_IFNAME
  std::optional<Error> port_error;           // rank 0: why MASTER_PORT can't be listened on
};
/// Opens the port for a moment where rank 0 is; asks name servers for two seconds at most.
MasterFacts master_facts(const CheckedWorker& worker);
std::vector<Finding> judge_master(const CheckedWorker& worker, const MasterFacts& facts);

/// Bytes of memory; absent: not known, or without a limit.
struct MemoryFacts {
  std::optional<std::uint64_t> shm_bytes;      // size of /dev/shm; absent: there is none
  std::optional<std::uint64_t> memlock_bytes;  // RLIMIT_MEMLOCK; absent: unlimited
  std::optional<std::uint64_t> group_limit_bytes;
  std::optional<std::uint64_t> group_used_bytes;  // of the group with that limit
  std::optional<std::uint64_t> available_bytes;   // MemAvailable of the machine
  int cores = 1;                                  // usable ones
};
MemoryFacts memory_facts(const CgroupFiles& files = {});
struct Devices {
  int gpus = 0;
  bool has_verbs = false;  // an active adapter that this container may use
};
std::vector<Finding> judge_memory(const CheckedWorker& worker, const MemoryFacts& facts,
                                  const Devices& devices);

/// The tightest memory limit above this process (cgroup v1 and v2), and what its group uses.
struct GroupMemory {
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;
};
std::optional<GroupMemory> group_memory(const CgroupFiles& files = {});

/// What the kernel says of an interface's speed, in Mb/s; 0: nothing.
int link_mbps(const std::string& interface);

/// Adapters of InfiniBand and RoCE.
std::vector<Finding> judge_adapters(const NetworkFacts& facts);

/// Which network so many workers will use, and why.
Finding judge_network(int workers, const NetworkUse& use);

struct GpuFacts {
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t uncorrected_errors = 0;  // of ECC, since the last reset
};
struct GpusFacts {
  int visible = 0;                               // as a process of training would count them
  std::string error;                             // why NVIDIA's library says nothing
  std::vector<GpuFacts> gpus;                    // all of the machine or container
  std::vector<std::string> without_peer_access;  // "0 and 1"
};
/// Through NVIDIA's management library, where there is one.
GpusFacts gpus_facts(int visible);
std::vector<Finding> judge_gpus(const GpusFacts& facts);

/// Of GPUs of AMD, where there are some; `visible` are NVIDIA's.
std::vector<Finding> judge_amd_gpus(std::optional<int> amd, int visible);

/// A folder that training writes to.
struct DiskFacts {
  std::string path;   // as given
  std::string error;  // why it can't be written
  bool is_full = false;
  std::uint64_t free_bytes = 0;
  std::uint64_t written_bytes = 0;  // by the test
  double seconds = 0;               // until they were on the disk
};
/// Writes at most 64 MB, for at most a second, into a file without a name. `out` need not exist.
DiskFacts disk_facts(const std::string& out);
std::vector<Finding> judge_disk(const DiskFacts& facts);

/// Something that training reads.
struct PathFacts {
  std::string from;  // "--init-from", "MODEL_PATH"
  std::string path;
  std::string error;  // why it can't be read
  bool is_folder = false;
  std::uint64_t entries = 0;  // of a folder
};
PathFacts path_facts(const std::string& from, const std::string& path);
Finding judge_path(const PathFacts& facts);

}  // namespace tj::trainer
