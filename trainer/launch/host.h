// What this machine, or the container on it, offers: GPUs, cores, a free port. Reads files and asks
// the kernel, decides nothing.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "contract/launch_env.h"
#include "contract/result.h"
#include "trainer/launch/control_groups.h"
#include "trainer/launch/identity.h"

namespace tj::trainer {

/// GPUs a process may use: the entries of CUDA_VISIBLE_DEVICES when it is set (CUDA stops at the
/// first -1), else the device nodes nvidia0, nvidia1, ... in `dev`.
int visible_gpus(const EnvLookup& lookup, const std::filesystem::path& dev = "/dev");

/// Where the kernel says what its driver for GPUs of AMD (amdkfd) has.
struct AmdFiles {
  std::filesystem::path dev = "/dev";
  std::filesystem::path topology = "/sys/class/kfd/kfd/topology/nodes";
};

/// GPUs of AMD that this machine has and this process may use: `kfd` is in `dev`. 0: its topology
/// says nothing. Absent: no such device. Whether libtorch can use them is another question.
std::optional<int> amd_gpus(const AmdFiles& files = {});

/// "2 GPUs of AMD", "GPUs of AMD"
std::string amd_gpus_text(int count);

/// Why they are not trained on.
inline constexpr const char* kNoRocm =
    "this build computes on GPUs by CUDA and NCCL, and has nothing for ROCm";

/// Fails with Code::invalid where CUDA_VISIBLE_DEVICES has an index of no GPU of this machine, by
/// the device nodes in `dev`; where there are none, nothing is known.
Result<void> check_visible_gpus(const EnvLookup& lookup, const std::filesystem::path& dev = "/dev");

/// Whole cores of the tightest CPU quota above this process (cgroup v1 and v2), at least 1; absent
/// without a quota.
std::optional<int> quota_cores(const CgroupFiles& files = {});

/// Cores this process may really use: its affinity, cut by the quota. At least 1.
int usable_cores();

/// GPUs, cores and name of this machine; no port.
WorkerHost this_host();

/// A TCP port of 127.0.0.1 that nobody uses at this moment.
Result<int> free_port();

}  // namespace tj::trainer
