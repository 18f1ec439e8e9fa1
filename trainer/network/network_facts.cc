#include "trainer/network/network_facts.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kEntriesMax = 1024;  // of a folder in sysfs

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (fs::directory_iterator entry(folder, unreadable), end; !unreadable && entry != end;
       entry.increment(unreadable)) {
    if (found.size() < kEntriesMax) found.push_back(entry->path());
  }
  return found;
}

/// The number that `text` begins with, 0 without one: "400 Gb/sec (4X NDR)", "2.5 Gb/sec".
int leading_number(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string without_zone(std::string address) { return address.substr(0, address.find('%')); }

}  // namespace

std::vector<HcaPort> hca_ports(const HcaFiles& files) {
  std::vector<HcaPort> ports;
  for (const auto& device : entries(files.adapters)) {
    for (const auto& port : entries(device / "ports")) {
      // As the kernel writes it: "4: ACTIVE".
      ports.push_back({.device = device.filename().string(),
                       .port = leading_number(port.filename().string()),
                       .is_active = leading_number(first_line(port / "state")) == 4,
                       .is_infiniband = first_line(port / "link_layer") != "Ethernet",
                       .rate_gbps = leading_number(first_line(port / "rate"))});
    }
  }
  // mlx5_2 before mlx5_10.
  const auto key = [](const HcaPort& port) {
    return std::tuple(port.device.size(), port.device, port.port);
  };
  std::ranges::sort(ports, {}, key);
  return ports;
}

std::map<std::string, std::string> interfaces_by_address() {
  std::map<std::string, std::string> names;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char text[NI_MAXHOST];
    if (::getnameinfo(entry->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0)
      names.emplace(without_zone(text), entry->ifa_name);
  }
  return names;
}

Result<void> check_interfaces(const std::vector<std::string>& names) {
  std::set<std::string> known;
  for (const auto& [address, name] : interfaces_by_address()) known.insert(name);
  for (const auto& name : names) {
    if (known.contains(name)) continue;
    std::string all;
    for (const auto& one : known) all += (all.empty() ? "" : ", ") + one;
    return Error{.code = Code::invalid,
                 .message = "is \"" + name + "\"; it must be one of " + all,
                 .subject = "GLOO_SOCKET_IFNAME"};
  }
  return {};
}

NetworkFacts network_facts(const std::string& address, const HcaFiles& files) {
  const auto names = interfaces_by_address();
  const auto name = names.find(without_zone(address));
  std::error_code unreadable;
  return {.interface = name == names.end() ? "" : name->second,
          .address = address,
          .ports = hca_ports(files),
          .has_verbs = fs::exists(files.verbs, unreadable)};
}

}  // namespace tj::trainer
