#include "trainer/launch/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

int count_device_list(const std::string& list) {
  int count = 0;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::string device = trimmed(entry);
    if (device.empty() || device == "-1" || device == "NoDevFiles") break;
    ++count;
  }
  return count;
}

bool is_gpu_node(const std::string& name) {
  constexpr std::string_view kPrefix = "nvidia";
  return name.size() > kPrefix.size() && name.starts_with(kPrefix) &&
         name.find_first_not_of("0123456789", kPrefix.size()) == std::string::npos;
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
  if (const auto list = lookup("CUDA_VISIBLE_DEVICES")) return count_device_list(*list);
  std::error_code unreadable;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(dev, unreadable)) {
    if (is_gpu_node(entry.path().filename().string())) ++count;
  }
  return count;
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
