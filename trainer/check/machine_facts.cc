// Reads the facts of machine.h: from /proc, /sys, control groups, the resolver and the disk.
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "trainer/check/machine.h"
#include "trainer/network/master_link.h"
#include "trainer/network/network_facts.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kNameServerMax{2000};
constexpr std::uint64_t kDiskTestBytesMax = 64'000'000;
constexpr std::size_t kDiskPieceBytes = 4'000'000;
constexpr double kDiskTestSecondsMax = 1.0;
constexpr std::uint64_t kEntriesMax = 100'000;  // of a folder; more are not counted
// The kernel's "no limit" of cgroup v1 is the largest multiple of a page.
constexpr std::uint64_t kUnlimitedFrom = std::uint64_t{1} << 60;

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

std::optional<GroupMemory> memory_of_group(const fs::path& group) {
  for (const auto& [limit_file, used_file] :
       {std::pair("memory.max", "memory.current"),
        std::pair("memory.limit_in_bytes", "memory.usage_in_bytes")}) {
    const auto limit = number_in(group / limit_file);  // "max" is no number
    if (limit && *limit < kUnlimitedFrom)
      return GroupMemory{*limit, number_in(group / used_file).value_or(0)};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> available_memory() {
  std::ifstream stream("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kibibytes = 0;
  while (stream >> name >> kibibytes) {
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(stream, unit);
  }
  return std::nullopt;
}

/// The folder itself, or the nearest above it that is there.
fs::path existing_part(fs::path path) {
  std::error_code unreadable;
  path = fs::absolute(path, unreadable);
  while (!fs::exists(path, unreadable) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// A file that is gone when it is closed, whatever ends the program.
UniqueFd nameless_file(const fs::path& folder) {
  UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file.open() || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string pattern = (folder / ".trainer-check-XXXXXX").string();
  UniqueFd named(::mkostemp(pattern.data(), O_CLOEXEC));
  if (named.open()) ::unlink(pattern.c_str());
  return named;
}

void time_writes(DiskFacts& facts, const fs::path& folder) {
  const UniqueFd file = nameless_file(folder);
  const auto fail = [&](const char* what) {
    facts.is_full = errno == ENOSPC || errno == EDQUOT;
    facts.error = std::string(what) + ": " + std::strerror(errno);
  };
  if (!file.open()) return fail("no file can be made");
  // Not zeros: some filesystems write those nowhere.
  std::vector<char> piece(kDiskPieceBytes);
  std::uint32_t state = 1;
  for (char& byte : piece) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const auto begun = steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(steady_clock::now() - begun).count();
  };
  while (facts.written_bytes < kDiskTestBytesMax && elapsed() < kDiskTestSecondsMax) {
    const ssize_t written = ::write(file.value(), piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail("a write of a test file failed");
    facts.written_bytes += static_cast<std::uint64_t>(written);
  }
  if (::fsync(file.value()) != 0) return fail("a flush of a test file failed");
  facts.seconds = elapsed();
}

}  // namespace

std::optional<GroupMemory> group_memory(const CgroupFiles& files) {
  std::optional<GroupMemory> tightest;
  for (const auto& [controllers, levels] : control_groups(files, "memory")) {
    for (const auto& level : levels) {
      const auto own = memory_of_group(files.mount / controllers / level);
      if (own && (!tightest || own->limit_bytes < tightest->limit_bytes)) tightest = own;
    }
  }
  return tightest;
}

MemoryFacts memory_facts(const CgroupFiles& files) {
  MemoryFacts facts;
  struct statvfs shm {};
  std::error_code unreadable;
  if (fs::is_directory("/dev/shm", unreadable) && ::statvfs("/dev/shm", &shm) == 0)
    facts.shm_bytes = std::uint64_t{shm.f_blocks} * shm.f_frsize;
  struct rlimit locked {};
  if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
    facts.memlock_bytes = locked.rlim_cur;
  if (const auto group = group_memory(files)) {
    facts.group_limit_bytes = group->limit_bytes;
    facts.group_used_bytes = group->used_bytes;
  }
  facts.available_bytes = available_memory();
  facts.cores = usable_cores();
  return facts;
}

MasterFacts master_facts(const CheckedWorker& worker) {
  MasterFacts facts;
  const Endpoint master{worker.master_host, worker.master_port};
  const auto address = local_address_now(master, kNameServerMax);
  facts.gloo_interfaces = chosen_interfaces(process_env);
  if (!address) {
    facts.error = address.error().message;
  } else {
    facts.address = *address;
    facts.interface = network_facts(*address).interface;
  }
  if (!worker.has_rank_0) return facts;
  const auto socket = ListeningSocket::open(worker.master_port);
  if (!socket) facts.port_error = socket.error();
  // Whoever listens here is reached at the master's address only if that is ours.
  if (socket && address) {
    const auto connected = connect_to(master, steady_clock::now() + std::chrono::milliseconds(500));
    facts.is_master_local = connected.ok();
    if (connected) ::close(*connected);
  }
  return facts;
}

int link_mbps(const std::string& interface) {
  // Not /sys/class/net: that may be mounted for another network namespace.
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_cmd command{};
  command.cmd = ETHTOOL_GSET;
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&command);
  if (!socket.open() || ::ioctl(socket.value(), SIOCETHTOOL, &request) != 0) return 0;
  const std::uint32_t mbps = ethtool_cmd_speed(&command);
  return mbps > INT_MAX ? 0 : static_cast<int>(mbps);  // a virtual one may not know
}

DiskFacts disk_facts(const std::string& out) {
  DiskFacts facts{.path = out};
  const fs::path folder = existing_part(out);
  std::error_code unreadable;
  if (!fs::is_directory(folder, unreadable)) {
    facts.error = folder.string() + " is not a folder";
    return facts;
  }
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) == 0)
    facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  time_writes(facts, folder);
  return facts;
}

PathFacts path_facts(const std::string& from, const std::string& path) {
  PathFacts facts{.from = from, .path = path};
  if (::access(path.c_str(), R_OK) != 0) {
    facts.error = std::strerror(errno);
    return facts;
  }
  std::error_code failed;
  facts.is_folder = fs::is_directory(path, failed);
  if (!facts.is_folder) return facts;
  for (fs::directory_iterator entry(path, failed), end;
       !failed && entry != end && facts.entries < kEntriesMax; entry.increment(failed))
    ++facts.entries;
  if (failed) facts.error = failed.message();
  return facts;
}

}  // namespace tj::trainer
