#include "trainer/comm/nccl_words.h"

#include <algorithm>
#include <cctype>

namespace tj::trainer {
namespace {

constexpr bool kOfThisNode = true;

/// By what NCCL 2.28 warns of (src/misc/{shmutils,socket,ibvwrap}.cc, src/transport/net_ib,
/// src/bootstrap.cc, src/init.cc), and earlier ones did; in small letters.
struct Rule {
  std::string_view words;
  std::string_view also;  // another piece that must be there; may be empty
  std::string_view remedy;
  bool is_of_this_node = false;
};

constexpr std::string_view kSharedMemory =
    "/dev/shm is too small or full: a volume emptyDir with medium: Memory, mounted at /dev/shm, "
    "gives more (docker: --shm-size)";
constexpr std::string_view kMemlock =
    "the memlock limit is too low for InfiniBand: `ulimit -l` must be unlimited, in a pod by the "
    "capability IPC_LOCK";
constexpr std::string_view kFabric =
    "the adapters of the nodes do not reach each other: NCCL_IB_HCA must name those of one "
    "network, or NCCL_IB_DISABLE=1 on all lets all use Ethernet";
constexpr std::string_view kPorts =
    "NCCL takes ports of its own beside MASTER_PORT, on the interface that NCCL_SOCKET_IFNAME "
    "names (by itself that of the route to the master): every port between the nodes must be open "
    "there";

/// The first that fits counts.
constexpr Rule kRules[] = {
    {"attaching to shared memory", "",
     "the ranks of one node must see one /dev/shm; NCCL_SHM_DISABLE=1 on all does without",
     kOfThisNode},
    {"shared memory segment", "permission denied",
     "/dev/shm must be writable for the user that trains", kOfThisNode},
    {"shared memory segment", "", kSharedMemory, kOfThisNode},
    {"/dev/shm", "", kSharedMemory, kOfThisNode},
    {"posix_fallocate", "", kSharedMemory, kOfThisNode},
    {"ibv_", "cannot allocate memory", kMemlock, kOfThisNode},
    {"ibv_open_device", "",
     "the container needs /dev/infiniband of the device plug-in, or NCCL_IB_DISABLE=1",
     kOfThisNode},
    {"ibv_", "", kFabric},
    {"got completion from peer", "", kFabric},
    {"interface found", "",
     "NCCL_SOCKET_IFNAME must name an interface of this node; without it that of the route to the "
     "master is taken",
     kOfThisNode},
    {"invalid device ordinal", "",
     "CUDA_VISIBLE_DEVICES must name GPUs that this node has, one for each of its processes "
     "(trainer launch --nproc)",
     kOfThisNode},
    {"duplicate gpu detected", "",
     "two ranks have one GPU: CUDA_VISIBLE_DEVICES, or trainer launch --nproc, must give each its "
     "own",
     kOfThisNode},
    {"too many open files", "", "`ulimit -n` must be higher, 65536 for instance", kOfThisNode},
    {"connection closed by remote peer", "",
     "another rank has ended, or was never well: its own last line says why"},
    {"connect", "refused", kPorts},
    {"connect", "timed out", kPorts},
    {"no route to host", "", kPorts},
    {"network is unreachable", "", kPorts},
    {"unhandled system error", "",
     "NCCL's own lines above say which call failed (NCCL_DEBUG=INFO says more); a closed port, "
     "another interface in NCCL_SOCKET_IFNAME, a small /dev/shm and a low memlock limit are what "
     "it mostly is, and trainer check looks at all four"},
};

std::string_view line_of(std::string_view text) { return text.substr(0, text.find('\n')); }

/// What stands behind `words`; all of it where they are not there.
std::string_view behind(std::string_view text, std::string_view words) {
  const auto at = text.find(words);
  return at == std::string_view::npos ? text : text.substr(at + words.size());
}

/// NCCL's last warning (ncclGetLastError), as c10d quotes it; empty without one.
std::string_view last_warning(std::string_view thrown) {
  constexpr std::string_view kHeading = "Last error:\n";
  const auto at = thrown.find(kHeading);
  if (at == std::string_view::npos) return "";
  const auto line = line_of(thrown.substr(at + kHeading.size()));
  return line.starts_with("Exception raised") ? "" : line;  // it had none, and the stack follows
}

/// Without c10d's source line and its advice, which ours stands for.
std::string first_line(std::string_view thrown) {
  constexpr std::string_view kSource = "NCCL error in: ", kAdvice = " (run with NCCL_DEBUG";
  auto line = line_of(thrown);
  line = line.find(kSource) == std::string_view::npos ? behind(line, "NCCL error: ")
                                                      : behind(behind(line, kSource), ", ");
  std::string text(line);
  const auto advice = text.find(kAdvice);
  const auto end = advice == std::string::npos ? advice : text.find(')', advice);
  if (end != std::string::npos) text.erase(advice, end + 1 - advice);
  return text;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

NcclWords nccl_words(std::string_view thrown) {
  NcclWords words{.cause = first_line(thrown), .remedy = {}};
  if (const auto warning = last_warning(thrown); !warning.empty())
    words.cause.append(": ").append(warning);
  const std::string small = lower(words.cause);
  const auto rule = std::ranges::find_if(kRules, [&](const Rule& each) {
    return small.find(each.words) != std::string::npos &&
           small.find(each.also) != std::string::npos;
  });
  if (rule == std::end(kRules)) return words;
  words.remedy = rule->remedy;
  words.is_of_this_node = rule->is_of_this_node;
  return words;
}

bool is_of_nccl(std::string_view thrown) {
  return line_of(thrown).find("NCCL error") != std::string_view::npos;
}

std::string describe(const NcclWords& words) {
  return words.remedy.empty() ? words.cause : words.cause + "; " + words.remedy;
}

}  // namespace tj::trainer
