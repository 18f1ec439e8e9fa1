#include "trainer/network/network.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>

namespace tj::trainer {
namespace {

constexpr std::size_t kHcasMax = 32;  // NCCL reads no more (net_ib: MAX_IB_DEVS)

/// Which ports carry the training, and in words which or why none.
struct Fabric {
  std::vector<HcaPort> ports;
  std::string words;
  std::string left_out = {};  // ", not mlx5_2, slower or of another kind"
};

std::string names_of(const std::vector<HcaPort>& ports, const char* separator) {
  std::string text;
  for (const auto& port : ports) {
    const auto of_device = [&](const HcaPort& other) { return other.device == port.device; };
    text += (text.empty() ? "" : separator) + port.device;
    // A second port of the same adapter may be another network.
    if (port.port != 1 || std::ranges::count_if(ports, of_device) > 1)
      text += ":" + std::to_string(port.port);
  }
  return text;
}

std::vector<HcaPort> only(std::vector<HcaPort> ports, auto&& condition) {
  std::erase_if(ports, [&](const HcaPort& port) { return !condition(port); });
  return ports;
}

std::string devices_of(const std::vector<HcaPort>& ports) {
  std::set<std::string> devices;
  for (const auto& port : ports) devices.insert(port.device);
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + device;
  return text;
}

/// The fastest active ports of one kind, InfiniBand before RoCE: the slower ones are for storage.
Fabric find_fabric(const NetworkFacts& facts) {
  if (facts.ports.empty()) return {{}, "no InfiniBand adapter"};
  const auto active = only(facts.ports, [](const HcaPort& port) { return port.is_active; });
  if (active.empty()) return {{}, "no port of " + devices_of(facts.ports) + " is active"};
  if (!facts.has_verbs) {
    return {{},
            devices_of(active) +
                (devices_of(active).find(',') == std::string::npos ? " is" : " are") +
                " active, but this container has no /dev/infiniband"};
  }
  const bool has_infiniband =
      std::ranges::any_of(active, [](const HcaPort& port) { return port.is_infiniband; });
  auto kind =
      only(active, [&](const HcaPort& port) { return port.is_infiniband == has_infiniband; });
  const int rate = std::ranges::max_element(kind, {}, &HcaPort::rate_gbps)->rate_gbps;
  auto chosen = only(kind, [&](const HcaPort& port) { return port.rate_gbps == rate; });
  if (chosen.size() > kHcasMax) chosen.resize(kHcasMax);
  std::string words = (has_infiniband ? "InfiniBand " : "RoCE ") + names_of(chosen, ", ");
  if (rate > 0) words += " (" + std::to_string(rate) + " Gb/s)";
  const auto left_out = only(
      active, [&](const HcaPort& port) { return std::ranges::find(chosen, port) == chosen.end(); });
  std::string others;
  if (!left_out.empty())
    others = ", not " + names_of(left_out, ", ") + ", slower or of another kind";
  return {std::move(chosen), std::move(words), std::move(others)};
}

/// Whether NCCL has InfiniBand or RoCE: what the user says, and what the machine has.
struct Verdict {
  std::optional<std::string> own_disable, own_hcas;
  Fabric fabric;
  bool is_forbidden = false;
  bool takes_verbs = false;
  /// Where it does not.
  std::string why_not() const {
    if (is_forbidden) return "NCCL_IB_DISABLE is " + *own_disable;
    return fabric.words + (own_hcas ? ", though NCCL_IB_HCA is " + *own_hcas : "");
  }
};

Verdict judge(const NetworkFacts& facts, const EnvLookup& lookup) {
  Verdict verdict{.own_disable = lookup("NCCL_IB_DISABLE"),
                  .own_hcas = lookup("NCCL_IB_HCA"),
                  .fabric = find_fabric(facts)};
  verdict.is_forbidden = verdict.own_disable && *verdict.own_disable != "0";
  verdict.takes_verbs = !verdict.is_forbidden && !verdict.fabric.ports.empty();
  return verdict;
}

std::string place_of(const NetworkFacts& facts) {
  if (facts.interface.empty()) return "the route to the master";
  return facts.interface + (facts.address.empty() ? "" : " (" + facts.address + ")");
}

/// "Ethernet eth0", as NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME say it, or the route to the master.
std::string ethernet_by(const NetworkFacts& facts, const std::optional<std::string>& own) {
  const std::string name = own.value_or(facts.interface);
  if (name.empty()) return "Ethernet by the route to the master";
  if (name.starts_with('^')) return "Ethernet, but not " + name.substr(1);
  return "Ethernet " + name.substr(name.starts_with('=') ? 1 : 0);
}

/// Adds variables unless the user has them.
class Chooser {
 public:
  explicit Chooser(const EnvLookup& lookup) : lookup_(lookup) {}

  void set(const char* name, const std::string& value, const std::string& origin) {
    if (show_own(name)) return;
    choice.variables.push_back({name, value});
    choice.rows.push_back({name, value, "computed: " + origin});
  }

  /// What the user says, as a row of its own.
  std::optional<std::string> show_own(const char* name) {
    auto own = lookup_(name);
    if (own) choice.rows.push_back({name, *own, std::string("environment ") + name});
    return own;
  }

  NetworkChoice choice;

 private:
  const EnvLookup& lookup_;
};

}  // namespace

NetworkChoice choose_network(const NetworkFacts& facts, const EnvLookup& lookup) {
  Chooser chooser(lookup);
  if (!facts.interface.empty()) {
    // NCCL reads a name as a prefix unless "=" stands before it: eth1 would take eth10 too.
    chooser.set("NCCL_SOCKET_IFNAME", "=" + facts.interface, "the route to the master");
    chooser.set("GLOO_SOCKET_IFNAME", facts.interface, "the route to the master");
  } else {
    chooser.show_own("NCCL_SOCKET_IFNAME");
    chooser.show_own("GLOO_SOCKET_IFNAME");
  }
  chooser.show_own("NCCL_IB_DISABLE");
  chooser.show_own("NCCL_IB_HCA");
  const Verdict verdict = judge(facts, lookup);
  const Fabric& fabric = verdict.fabric;
  if (verdict.takes_verbs && !verdict.own_hcas)
    chooser.set("NCCL_IB_HCA", "=" + names_of(fabric.ports, ","), "adapters with an active port");
  const bool all_dead =
      !facts.ports.empty() && std::ranges::none_of(facts.ports, &HcaPort::is_active);
  if (all_dead && !verdict.own_disable && !verdict.own_hcas)
    chooser.set("NCCL_IB_DISABLE", "1", "adapters are there, none of them active");
  chooser.set("NCCL_DEBUG", "WARN", "a failure of NCCL should say its cause");
  // torch's ProcessGroupNCCL has a thread that aborts the process, without last words, once its
  // own watchdog thread has not moved for TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC (8 minutes): a call of
  // CUDA that takes long where a limit of ours allows it. On by default (ProcessGroupNCCL.cpp,
  // HeartbeatMonitor: torch 2.11).
  chooser.set("TORCH_NCCL_ENABLE_MONITORING", "0", "the watchdog judges hangs, by its limits");

  NetworkChoice& choice = chooser.choice;
  choice.transport = verdict.takes_verbs ? kVerbs : kEthernet;
  const auto own_gloo = lookup("GLOO_SOCKET_IFNAME");
  choice.control = own_gloo ? *own_gloo + " (environment GLOO_SOCKET_IFNAME)" : place_of(facts);
  if (verdict.takes_verbs) {
    choice.path = verdict.own_hcas
                      ? "InfiniBand " + *verdict.own_hcas + " (environment NCCL_IB_HCA)"
                      : fabric.words + fabric.left_out;
  } else {
    const auto own_interface = lookup("NCCL_SOCKET_IFNAME");
    choice.path =
        (own_interface ? *own_interface + " (environment NCCL_SOCKET_IFNAME)" : place_of(facts)) +
        ": " + verdict.why_not();
  }
  choice.rows.push_back({"network", choice.path, "computed"});
  return choice;
}

NetworkUse network_in_use(const NetworkFacts& facts, const EnvLookup& lookup, bool has_gpu) {
  if (!has_gpu) {
    const auto own = lookup("GLOO_SOCKET_IFNAME");
    return {ethernet_by(facts, own), std::string("no GPU is visible, and Gloo takes TCP") +
                                         (own ? ", where GLOO_SOCKET_IFNAME says" : "")};
  }
  const Verdict verdict = judge(facts, lookup);
  const Fabric& fabric = verdict.fabric;
  if (verdict.takes_verbs) {
    if (verdict.own_hcas) return {"InfiniBand " + *verdict.own_hcas, "NCCL_IB_HCA says so"};
    return {fabric.words,
            (fabric.ports.size() == 1 ? "its port is active" : "their ports are active") +
                fabric.left_out};
  }
  const auto own = lookup("NCCL_SOCKET_IFNAME");
  std::string why = verdict.why_not();
  if (own) why += "; NCCL_SOCKET_IFNAME says which interface";
  return {ethernet_by(facts, own), why};
}

std::vector<std::string> chosen_interfaces(const EnvLookup& lookup) {
  std::vector<std::string> names;
  std::istringstream list(lookup("GLOO_SOCKET_IFNAME").value_or(""));
  for (std::string name; std::getline(list, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

std::string describe_collectives(const NetworkChoice& choice, const std::string& why_no_gpu) {
  return "collectives: Gloo over " + choice.control + ": " + why_no_gpu;
}

std::string describe_collectives(const NetworkChoice& choice) {
  return "collectives: NCCL over " + choice.path + "; control messages: Gloo over " +
         choice.control;
}

}  // namespace tj::trainer
