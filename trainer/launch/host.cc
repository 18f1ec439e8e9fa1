#include "trainer/launch/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

/// The entries of CUDA_VISIBLE_DEVICES.
std::vector<std::string> listed_devices(const std::string& list) {
  std::vector<std::string> devices;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::string device = trimmed(entry);
    if (device.empty() || device == "-1" || device == "NoDevFiles") break;
    devices.push_back(std::move(device));
  }
  return devices;
}

bool is_gpu_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
}

int device_nodes(const fs::path& dev) {
  std::error_code unreadable;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(dev, unreadable)) {
    if (is_gpu_node(entry.path().filename().string())) ++count;
  }
  return count;
}

/// A node of amdkfd's topology: a processor has no SIMD units, or a GPU.
bool computes(const fs::path& node) {
  std::ifstream properties(node / "properties");
  std::string name;
  std::uint64_t value = 0;
  while (properties >> name >> value)
    if (name == "simd_count") return value > 0;
  return false;
}

/// False for what is no index, such as the name of a card, of which nothing is known here.
bool is_index_beyond(const std::string& device, int gpus) {
  if (device.find_first_not_of("0123456789") != std::string::npos) return false;
  int index = 0;
  const auto read = std::from_chars(device.data(), device.data() + device.size(), index);
  return read.ec != std::errc() || index >= gpus;
}

/// quota and period in microseconds; absent when the group has no limit or no such file.
std::optional<double> cores_of_group(const fs::path& group) {
  std::string quota;
  double period_us = 0;
  if (std::ifstream v2(group / "cpu.max"); v2) {
    v2 >> quota >> period_us;
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota;
    std::ifstream(group / "cpu.cfs_period_us") >> period_us;
  }
  if (quota.empty() || quota == "max" || quota == "-1" || period_us <= 0) return std::nullopt;
  try {
    return std::stod(quota) / period_us;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

int visible_gpus(const EnvLookup& lookup, const fs::path& dev) {
  if (const auto list = lookup("CUDA_VISIBLE_DEVICES"))
    return static_cast<int>(listed_devices(*list).size());
  return device_nodes(dev);
}

std::optional<int> amd_gpus(const AmdFiles& files) {
  std::error_code unreadable;
  if (!fs::exists(files.dev / "kfd", unreadable)) return std::nullopt;
  int count = 0;
  for (const auto& node : fs::directory_iterator(files.topology, unreadable))
    if (computes(node.path())) ++count;
  return count;
}

std::string amd_gpus_text(int count) {
  if (count == 0) return "GPUs of AMD";
  return std::to_string(count) + (count == 1 ? " GPU of AMD" : " GPUs of AMD");
}

Result<void> check_visible_gpus(const EnvLookup& lookup, const fs::path& dev) {
  const auto list = lookup("CUDA_VISIBLE_DEVICES");
  const int gpus = device_nodes(dev);
  if (!list || gpus == 0) return {};
  const auto devices = listed_devices(*list);
  const auto beyond = std::ranges::find_if(
      devices, [gpus](const std::string& device) { return is_index_beyond(device, gpus); });
  if (beyond == devices.end()) return {};
  const std::string right = gpus == 1 ? "0, the only GPU here"
                                      : "of indices from 0 to " + std::to_string(gpus - 1) +
                                            ", as " + std::to_string(gpus) + " GPUs are here";
  return Error{.code = Code::invalid,
               .message = "is \"" + *list + "\", and there is no GPU " + *beyond +
                          " (CUDA: invalid device ordinal); it must be " + right +
                          ", or not be set",
               .subject = "CUDA_VISIBLE_DEVICES"};
}

std::optional<int> quota_cores(const CgroupFiles& files) {
  std::optional<double> cores;
  for (const auto& [controllers, levels] : control_groups(files, "cpu")) {
    for (const std::string& mounted : {std::string(), controllers, std::string("cpu")}) {
      for (const auto& level : levels) {
        const auto own = cores_of_group(files.mount / mounted / level);
        if (own) cores = cores ? std::min(*cores, *own) : *own;
      }
    }
  }
  if (!cores) return std::nullopt;
  return std::max(1, static_cast<int>(*cores));
}

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int cores = 1;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) cores = CPU_COUNT(&allowed);
  return std::max(1, std::min(cores, quota_cores().value_or(cores)));
}

WorkerHost this_host() {
  std::array<char, 256> name{};
  const bool has_name = ::gethostname(name.data(), name.size() - 1) == 0;
  return {.gpus = visible_gpus(process_env),
          .cores = usable_cores(),
          .free_port = 0,
          .name = has_name ? name.data() : "unknown"};
}

Result<int> free_port() {
  const auto failed = [](const char* call) {
    return Error{.code = Code::unavailable,
                 .message = std::string(call) + " failed: " + std::strerror(errno),
                 .subject = "free port on 127.0.0.1",
                 .retry_after = {}};
  };
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.open()) return failed("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.value(), generic, size) != 0) return failed("bind");
  if (::getsockname(fd.value(), generic, &size) != 0) return failed("getsockname");
  return static_cast<int>(ntohs(address.sin_port));
}

}  // namespace tj::trainer
