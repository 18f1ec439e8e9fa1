#include "trainer/check/nccl_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>
#include <vector>

#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
using enum Severity;

constexpr int kRetriesDefault = 7;  // NCCL_IB_RETRY_CNT; the hardware has three bits for it
constexpr long long kBufferDefault = 4 << 20;
// For an estimate: channels and ring neighbours of a GPU between nodes.
constexpr int kChannelsTypical = 16;
constexpr int kRingNeighbours = 2;

std::optional<long long> whole_number(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string> words_of(const std::string& list, char separator) {
  std::vector<std::string> words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Finding not_a_number(const EnvVar& variable) {
  return about(variable, warn, "is no number, and NCCL takes its default; it can go");
}

Finding is_default(const EnvVar& variable) {
  return about(variable, pass, "is the default; it can go");
}

/// InfiniBand specification, local ACK timeout: 4.096 us x 2^t per try.
std::optional<Finding> judge_ib_timeout(const EnvVar& variable, const LintContext& context) {
  constexpr int kDefault = 20, kHighest = 31, kWarnAbove = 22, kRefuseAbove = 25, kShortBelow = 14;
  const auto exponent = whole_number(variable.value);
  if (!exponent) return not_a_number(variable);
  if (*exponent <= 0 || *exponent > kHighest) {
    return about(variable, fatal,
                 "means no limit: a dead peer is never noticed; 20, the default, notices it after "
                 "30 s");
  }
  const double each_s = 4.096e-6 * std::exp2(static_cast<double>(*exponent));
  const auto retries = whole_number(context.value_of("NCCL_IB_RETRY_CNT"));
  const double tries = static_cast<double>(retries.value_or(kRetriesDefault));
  const std::string each = each_s < 10 ? duration_text(each_s)
                                       : grouped(static_cast<long long>(std::round(each_s))) + " s";
  const std::string effect = "a dead peer is noticed after " + duration_text(each_s * tries) +
                             " (" + each + " x " + number_text(tries) + " tries)";
  if (*exponent > kRefuseAbove)
    return about(variable, fatal, effect + "; 20, the default, notices it after 30 s");
  if (*exponent > kWarnAbove)
    return about(variable, warn, effect + "; at most 22 (2 min), better none: 20 is 30 s");
  if (*exponent < kShortBelow)
    return about(variable, warn, effect + ": a short pause of the fabric ends the run; 20 is 30 s");
  if (*exponent == kDefault) return is_default(variable);
  return about(variable, pass, effect + "; the default, 20, takes 30 s");
}

std::optional<Finding> judge_ib_retries(const EnvVar& variable, const LintContext&) {
  const auto retries = whole_number(variable.value);
  if (!retries) return not_a_number(variable);
  if (*retries == kRetriesDefault) return is_default(variable);
  if (*retries < 0 || *retries > kRetriesDefault)
    return about(variable, warn, "the adapter has three bits for it; 7, the default, is the most");
  return about(variable, warn,
               "a pause of the fabric ends the run after " + std::to_string(*retries) +
                   " tries instead of 7; it can go");
}

std::optional<Finding> judge_threads(const EnvVar& variable, const LintContext&) {
  const auto threads = whole_number(variable.value);
  if (!threads) return not_a_number(variable);
  if (*threads == 512) return is_default(variable);
  if (*threads > 512 || *threads % 32 != 0) {
    return about(variable, warn,
                 "is cut to 512, the default, so it has no effect; only 64, 128, 256 and 512 "
                 "exist; it can go");
  }
  return about(variable, warn,
               "for debugging only: fewer threads than the default, 512, copy more slowly");
}

std::optional<Finding> judge_buffer(const EnvVar& variable, const LintContext&) {
  const auto bytes = whole_number(variable.value);
  if (!bytes) return not_a_number(variable);
  if (*bytes == kBufferDefault) return is_default(variable);
  if (*bytes < kBufferDefault)
    return about(variable, warn,
                 "for debugging only: below the default, 4 MiB, fewer copies overlap");
  const auto more = static_cast<double>(*bytes - kBufferDefault);
  return about(
      variable, warn,
      "takes " + size_text(more) +
          " more GPU memory than the default for each channel and "
          "peer, about " +
          size_text(more * kChannelsTypical * kRingNeighbours) +
          " with 16 channels and 2 ring neighbours; it can go unless a benchmark shows a gain");
}

std::optional<Finding> judge_p2p_level(const EnvVar& variable, const LintContext&) {
  const std::string level = lower(variable.value);
  if (level == "sys" || level == "5") {
    return about(variable, warn,
                 "forces copies between GPUs over the link between the processors: often slower "
                 "than through /dev/shm, and it may hang where the IOMMU or ACS is on; it can go");
  }
  if (level == "loc" || level == "0")
    return about(variable, warn, "turns copies between GPUs off, NVLink's too; it can go");
  if (whole_number(level))
    return about(variable, warn, "numbers are discouraged, their meaning has changed; it can go");
  return about(variable, warn, "for debugging only: NCCL knows the distances itself; it can go");
}

std::optional<Finding> judge_gdr_level(const EnvVar& variable, const LintContext&) {
  const auto number = whole_number(variable.value);
  if ((number && *number > 4) || lower(variable.value) == "sys") {
    const std::string reads =
        number ? "numbers are discouraged, and this one is read as SYS: " : "";
    return about(variable, warn,
                 reads +
                     "GPU and adapter talk directly even across processors, which can be slower "
                     "than through memory; it can go");
  }
  if (number) return about(variable, warn, "numbers are discouraged; it can go");
  return about(variable, warn, "for debugging only: NCCL knows the distances itself; it can go");
}

std::optional<Finding> judge_cross_nic(const EnvVar& variable, const LintContext&) {
  if (variable.value == "2") return is_default(variable);
  if (variable.value == "0")
    return about(variable, pass,
                 "right only where each adapter has a switch of its own (rails); without effect "
                 "with one adapter; the default, 2, finds out");
  return about(variable, pass, "the default, 2, finds out");
}

std::optional<Finding> judge_ib_disable(const EnvVar& variable, const LintContext& context) {
  if (variable.value == "0") return is_default(variable);
  if (const auto list = context.value_of("NCCL_IB_HCA"); !list.empty()) {
    return about(variable, warn,
                 "contradicts NCCL_IB_HCA=" + list +
                     ": training goes over TCP, and the list has no effect; one of them must go");
  }
  int gbps = 0;
  for (const HcaPort& port : context.facts.ports)
    if (port.is_active) gbps += port.rate_gbps;
  if (gbps > 0)
    return about(variable, warn,
                 "leaves " + std::to_string(gbps) + " Gb/s of active adapters unused; it must go");
  return about(variable, pass, "right only beside an adapter without an active port");
}

std::optional<Finding> judge_shm_disable(const EnvVar& variable, const LintContext&) {
  if (variable.value == "0") return is_default(variable);
  return about(variable, warn,
               "GPUs of one node without peer access talk over the network; a larger /dev/shm is "
               "the remedy");
}

std::optional<Finding> judge_p2p_disable(const EnvVar& variable, const LintContext&) {
  if (variable.value == "0") return is_default(variable);
  return about(variable, warn,
               "for debugging only: NVLink stays unused, hundreds of GB/s become tens; it can go");
}

/// Since NCCL 2.24: "ring,tree", "^tree", "allreduce:ring;broadcast:ring"; an unknown word fails.
std::optional<Finding> judge_choice(const EnvVar& variable,
                                    std::span<const std::string_view> known) {
  std::string first;
  for (const std::string& part : words_of(lower(variable.value), ';')) {
    const auto colon = part.find(':');
    std::string list = colon == std::string::npos ? part : part.substr(colon + 1);
    if (list.starts_with("^")) list = list.substr(1);
    for (const std::string& word : words_of(list, ',')) {
      if (first.empty()) first = word;
      if (std::ranges::find(known, word) != known.end()) continue;
      std::string all;
      for (const auto name : known) all += (all.empty() ? "" : ", ") + std::string(name);
      return about(variable, fatal, "NCCL refuses \"" + word + "\" at its start; known are " + all);
    }
  }
  if (first == "ring" && variable.name == "NCCL_ALGO") {
    return about(variable, warn,
                 "forbids NCCL to choose: an all-reduce then takes 2(N-1) hops, where a tree takes "
                 "2 log2 N: 30 instead of 8 for 16 GPUs, which small ones feel; it can go");
  }
  return about(variable, warn, "for debugging only: forbids NCCL to choose by size; it can go");
}

std::optional<Finding> judge_algorithm(const EnvVar& variable, const LintContext&) {
  static constexpr std::string_view kKnown[] = {
      "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
  return judge_choice(variable, kKnown);
}

std::optional<Finding> judge_protocol(const EnvVar& variable, const LintContext&) {
  static constexpr std::string_view kKnown[] = {"ll", "ll128", "simple"};
  return judge_choice(variable, kKnown);
}

std::optional<Finding> judge_debug(const EnvVar& variable, const LintContext&) {
  const std::string level = lower(variable.value);
  if (level == "warn" || level == "version") return std::nullopt;
  if (level == "info")
    return about(variable, pass, "hundreds of lines for each rank; WARN says why something failed");
  if (level == "trace") return about(variable, warn, "for debugging only: slow; WARN is enough");
  return about(variable, warn, "is no level; VERSION, WARN, INFO and TRACE are");
}

std::optional<Finding> judge_sockets(const EnvVar& variable, const LintContext& context) {
  constexpr long long kProductMax = 64, kThreadsMax = 16;
  const auto threads = whole_number(context.value_of("NCCL_SOCKET_NTHREADS")).value_or(1);
  const auto each = whole_number(context.value_of("NCCL_NSOCKS_PERTHREAD")).value_or(1);
  if (threads > kThreadsMax && variable.name == "NCCL_SOCKET_NTHREADS")
    return about(variable, warn, "is cut to 16, the most");
  if (threads * each > kProductMax)
    return about(variable, warn,
                 std::to_string(threads) + " threads x " + std::to_string(each) +
                     " sockets are cut to 64 sockets in all");
  return std::nullopt;
}

std::optional<Finding> judge_net(const EnvVar& variable, const LintContext& context) {
  const bool has_active = std::ranges::any_of(context.facts.ports, &HcaPort::is_active);
  if (lower(variable.value) != "socket" || !has_active) return std::nullopt;
  return about(variable, warn, "training goes over TCP although adapters are active; it must go");
}

std::optional<Finding> judge_async_errors(const EnvVar& variable, const LintContext&) {
  if (variable.value != "0") return std::nullopt;
  return about(variable, warn, "a failed collective then waits for ever; it must go");
}

std::optional<Finding> judge_blocking_wait(const EnvVar& variable, const LintContext&) {
  if (variable.value == "0") return is_default(variable);
  return about(variable, warn,
               "the host waits for each collective, and none ends by it: the trainer gives them no "
               "limit of NCCL's; --limit says how long a rank may stand still; it must go");
}

std::optional<Finding> judge_monitor(const EnvVar& variable, const LintContext& context) {
  const auto own = context.value_of("TORCH_NCCL_ENABLE_MONITORING");
  if (!own.empty() && own != "0") return std::nullopt;
  return about(variable, warn,
               "only torch's monitor reads it, which the trainer turns off; --limit says how long "
               "a rank may stand still; it can go");
}

std::optional<Finding> judge_torch_debug(const EnvVar& variable, const LintContext&) {
  if (lower(variable.value) != "detail") return std::nullopt;
  return about(variable, warn, "for debugging only: one more collective before each collective");
}

using Judge = std::optional<Finding> (*)(const EnvVar&, const LintContext&);
struct Rule {
  std::string_view name;
  Judge judge;
};
constexpr Rule kRules[] = {{"GLOO_SOCKET_IFNAME", judge_gloo_interfaces},
                           {"NCCL_ALGO", judge_algorithm},
                           {"NCCL_ASYNC_ERROR_HANDLING", judge_async_errors},
                           {"NCCL_BLOCKING_WAIT", judge_blocking_wait},
                           {"NCCL_BUFFSIZE", judge_buffer},
                           {"NCCL_CROSS_NIC", judge_cross_nic},
                           {"NCCL_DEBUG", judge_debug},
                           {"NCCL_IB_DISABLE", judge_ib_disable},
                           {"NCCL_IB_HCA", judge_adapters},
                           {"NCCL_IB_RETRY_CNT", judge_ib_retries},
                           {"NCCL_IB_TIMEOUT", judge_ib_timeout},
                           {"NCCL_NET", judge_net},
                           {"NCCL_NET_GDR_LEVEL", judge_gdr_level},
                           {"NCCL_NSOCKS_PERTHREAD", judge_sockets},
                           {"NCCL_NTHREADS", judge_threads},
                           {"NCCL_P2P_DISABLE", judge_p2p_disable},
                           {"NCCL_P2P_LEVEL", judge_p2p_level},
                           {"NCCL_PROTO", judge_protocol},
                           {"NCCL_SHM_DISABLE", judge_shm_disable},
                           {"NCCL_SOCKET_IFNAME", judge_nccl_interfaces},
                           {"NCCL_SOCKET_NTHREADS", judge_sockets},
                           {"TORCH_DISTRIBUTED_DEBUG", judge_torch_debug},
                           {"TORCH_NCCL_ASYNC_ERROR_HANDLING", judge_async_errors},
                           {"TORCH_NCCL_BLOCKING_WAIT", judge_blocking_wait},
                           {"TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", judge_monitor}};

/// The rest of the manual's part "Debugging": "should not be used in production nor retained in
/// scripts".
constexpr std::string_view kDebugging[] = {
    "NCCL_CHECK_POINTERS",     "NCCL_GRAPH_MIXING_SUPPORT", "NCCL_IB_AR_THRESHOLD",
    "NCCL_LAUNCH_MODE",        "NCCL_LAUNCH_RACE_FATAL",    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_NCHANNELS",      "NCCL_NET_GDR_C2C",          "NCCL_NET_GDR_READ",
    "NCCL_NET_SHARED_BUFFERS", "NCCL_NET_SHARED_COMMS",     "NCCL_P2P_DIRECT_DISABLE",
    "NCCL_P2P_PXN_LEVEL",      "NCCL_PXN_DISABLE",          "NCCL_RUNTIME_CONNECT",
    "NCCL_TUNER_PLUGIN"};

}  // namespace

std::optional<Finding> judge_setting(const EnvVar& variable, const LintContext& context) {
  const auto rule = std::ranges::find(kRules, variable.name, &Rule::name);
  if (rule != std::end(kRules)) return rule->judge(variable, context);
  if (std::ranges::find(kDebugging, variable.name) != std::end(kDebugging))
    return about(variable, warn, "for debugging only, by NCCL's manual; it can go");
  return std::nullopt;
}

}  // namespace tj::trainer
