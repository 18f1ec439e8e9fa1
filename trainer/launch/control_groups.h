// Which control groups (v1 and v2) hold this process, as its files say it.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tj::trainer {

/// Where the kernel says what a control group may use; other places only in tests.
struct CgroupFiles {
  std::filesystem::path membership = "/proc/self/cgroup";
  std::filesystem::path mount = "/sys/fs/cgroup";
};

struct ControlGroup {
  std::string controllers;                    // "cpu,cpuacct"; empty: v2, which has all of them
  std::vector<std::filesystem::path> levels;  // relative: the group, those above it, the mount ("")
};

/// The groups of this process that may limit `controller`. A container sees its own group at the
/// mount, whatever its path says, so that the mount is always the last level.
std::vector<ControlGroup> control_groups(const CgroupFiles& files, std::string_view controller);

/// How many processes of this process's group the kernel has killed so far because its limit of
/// memory was reached. 0 where that is not told.
long long out_of_memory_kills(const CgroupFiles& files = {});

}  // namespace tj::trainer
