// Workers that ended by themselves: by their exit code (contract/outcome.h), by the reason in their
// last words, by what they said. The first that matches is the cause; the worker is the one that
// failed first, the others are collateral.
#include <algorithm>
#include <array>
#include <csignal>
#include <functional>

#include "cli/explain/rules.h"
#include "contract/outcome.h"
#include "operator/plan/explain.h"

namespace tj {
namespace {

using Seen = std::vector<Sighting>;

struct End {
  const char* cause;
  std::array<int, 2> codes;            // any of them; 0: fewer
  std::array<const char*, 4> reasons;  // of the last words; nullptr: fewer
  std::array<const char*, 5> words;    // in the last words; nullptr: fewer
  const char* remedy;
};
// What says more goes first. A code, a reason or words are enough.
constexpr std::array kEnds = {
    End{"GpuOutOfMemory",
        {},
        {"OutOfMemory", nullptr, nullptr, nullptr},
        {"CUDA out of memory", "OutOfMemoryError", "CUBLAS_STATUS_ALLOC_FAILED", nullptr, nullptr},
        "less per GPU: a smaller batch with more --accumulation, a shorter sequence, ZeRO or bf16"},
    End{"LossNotFinite",
        {},
        {"LossNotFinite", nullptr, nullptr, nullptr},
        {"loss is nan", "loss is NaN", "Loss is nan", "not finite", nullptr},
        "a lower learning rate, a longer warm-up, gradient clipping or bf16 in place of fp16; the "
        "last checkpoint is from before"},
    End{"DiskFull",
        {},
        {},
        {"No space left on device", "Disk quota exceeded", nullptr, nullptr, nullptr},
        "make room on the volume that is named, or keep fewer checkpoints"},
    End{"PortInUse",
        {},
        {"PortInUse", nullptr, nullptr, nullptr},
        {"already in use", "EADDRINUSE", "Address in use", "errno: 98", nullptr},
        "another program has that port: spec.masterPort, or no hostNetwork"},
    End{"NameNotResolved",
        {},
        {},
        {"the name does not resolve", "Name or service not known",
         "Temporary failure in name resolution", "getaddrinfo", nullptr},
        "does cluster DNS run (kubectl -n kube-system get pods), and does a NetworkPolicy of {ns} "
        "let port 53 out? The Service {job} must be there"},
    End{"MasterUnreachable",
        {},
        {},
        {"nothing comes back", "Connection refused", "No route to host", "Network is unreachable",
         "Connection timed out"},
        "did worker 0 start and listen (tj logs {job} --rank 0)? A NetworkPolicy or a firewall "
        "between the nodes must let the job's pods reach each other"},
    End{"NcclFailed",
        {},
        {"NcclFailed", nullptr, nullptr, nullptr},
        {"NCCL error", "ncclSystemError", "ncclUnhandledCudaError", "ncclInternalError",
         "unhandled system error"},
        "the last words of tj logs {job} --first-failure name the call; NCCL_DEBUG=INFO, and "
        "trainer check in the job's place"},
    End{"WrongWorldSize",
        {},
        {"WorldSizeMismatch", "RanksDiffer", "RankTaken", "SharedGpu"},
        {},
        "the workers do not agree on who they are: leave WORLD_SIZE, RANK and their like to the "
        "operator"},
    End{"RendezvousFailed",
        {exit_code::kRendezvous, 0},
        {"RendezvousFailed", nullptr, nullptr, nullptr},
        {"Rendezvous", "rendezvous", "Timed out waiting for clients", nullptr, nullptr},
        "not all ranks met in time: the message names who was missing; tj logs {job} --rank N of "
        "that one"},
    End{"BadData",
        {exit_code::kBadData, 0},
        {"BadData", "CheckpointMismatch", "NoUsableCheckpoint", nullptr},
        {},
        "the data or the checkpoint that is named can't be used; a retry would end the same way, "
        "so there is none"},
    End{"InputOutputFailed",
        {exit_code::kInputOutput, 0},
        {"DataLost", "SaveFailed", "OutNotWritable", "NotWritable"},
        {"Input/output error", "Stale file handle", nullptr, nullptr, nullptr},
        "a volume can't be read or written any more: look at the storage that is named"},
    End{"BadConfiguration",
        {exit_code::kBadConfig, exit_code::kUsage},
        {"BadConfig", "BadUsage", "Usage", nullptr},
        {},
        "the flag or variable that is named is wrong; a retry would end the same way, so there is "
        "none"},
    End{"WrongCommand",
        {126, 127},
        {},
        {"command not found", "exec format error", "executable file not found", nullptr, nullptr},
        "the command is not in the image, not executable, or of another architecture: command and "
        "args of the template"},
    End{"LibraryMissing",
        {},
        {},
        {"ModuleNotFoundError", "ImportError", "cannot open shared object file", "No module named",
         nullptr},
        "the image lacks what is named: install it there"},
    End{"NoGpu",
        {},
        {},
        {"no CUDA-capable device", "NVIDIA driver", "CUDA driver version", "invalid device ordinal",
         "No CUDA GPUs are available"},
        "resources.limits of the template must ask for GPUs, and the node's driver must suit the "
        "image's CUDA"},
    End{"GpuFault",
        {},
        {},
        {"uncorrectable ECC", "illegal memory access", "device-side assert", "Xid",
         "fallen off the bus"},
        "an ECC error or an Xid is the node's: exclude it (failurePolicy ExcludeNodeAndRestart) "
        "and have it looked at; an assert is the program's"},
    End{"SharedMemoryFull",
        {},
        {},
        {"/dev/shm", "bus error", "Bus error", "insufficient shared memory", nullptr},
        "mount an emptyDir with medium: Memory at /dev/shm in the template"},
    End{"Interrupted",
        {exit_code::kInterrupted, 0},
        {"Interrupted", nullptr, nullptr, nullptr},
        {},
        "it was asked to stop and saved a checkpoint; the next attempt goes on from it"},
    End{"PeerLost",
        {exit_code::kPeerLost, 0},
        {"PeerLost", nullptr, nullptr, nullptr},
        {"Connection reset by peer", "Connection closed by peer", "Broken pipe", nullptr, nullptr},
        "only collateral is known: the worker that was lost has said nothing; tj events {job} and "
        "tj logs {job} of the others"},
    End{"Crashed",
        {128 + SIGSEGV, 128 + SIGABRT},
        {},
        {"Segmentation fault", "core dumped", "terminate called", nullptr, nullptr},
        "a crash of the program or of a library: the end of tj logs {job} --first-failure"},
    End{"Killed",
        {128 + SIGKILL, 128 + SIGTERM},
        {},
        {},
        "somebody ended the process from outside of it: a person, a script of the image, or the "
        "node short of memory (dmesg there)"},
    End{"PythonError",
        {},
        {},
        {"Traceback (most recent call last)", "Error:", "Exception", nullptr, nullptr},
        "the last line names the error; tj logs {job} --first-failure shows where"},
};

template <typename Words>
bool any_of(const Words& words, const std::function<bool(const char*)>& is) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* each) { return each != nullptr && is(each); });
}

bool matches(const End& end, const FirstFailure& failure) {
  const bool by_code =
      failure.exit_code && *failure.exit_code != 0 &&
      std::find(end.codes.begin(), end.codes.end(), *failure.exit_code) != end.codes.end();
  return by_code || any_of(end.reasons, [&](const char* each) { return failure.reason == each; }) ||
         any_of(end.words, [&](const char* each) { return contains(failure.message, each); });
}

bool is_of_program(const FirstFailure& failure) {
  return failure.cause == FailureCause::exit_code || failure.cause == FailureCause::signal;
}

/// An init container's end is told by its own rule.
bool is_of_init_container(const Evidence& evidence, const FirstFailure& failure) {
  return std::any_of(evidence.pods.begin(), evidence.pods.end(), [&](const PodFacts& facts) {
    const auto& object = facts.object;
    const bool is_its_pod =
        facts.pod.worker_index == failure.rank && facts.pod.attempt == failure.attempt;
    if (!is_its_pod ||
        !object.contains(nlohmann::json::json_pointer("/status/initContainerStatuses")))
      return false;
    for (const auto& status : object["status"]["initContainerStatuses"]) {
      const auto code = nlohmann::json::json_pointer("/state/terminated/exitCode");
      if (status.is_object() && status.contains(code) && status[code] != 0) return true;
    }
    return false;
  });
}

const End* end_of(const FirstFailure& failure) {
  const auto found = std::find_if(kEnds.begin(), kEnds.end(),
                                  [&](const End& end) { return matches(end, failure); });
  return found == kEnds.end() ? nullptr : &*found;
}

/// `end` absent: of those that no other matches.
Seen see_end(const Evidence& evidence, const End* end) {
  const auto& failure = evidence.job.status.first_failure;
  const bool is_it = failure && is_of_program(*failure) && end_of(*failure) == end &&
                     !is_of_init_container(evidence, *failure);
  if (!is_it) return {};
  return {{"pod " + names::worker_pod(evidence.job.meta.name, failure->rank) + " of attempt " +
               std::to_string(failure->attempt),
           describe_first_failure(*failure), failure->finished_at}};
}

Seen out_of_memory(const Evidence& evidence) {
  const auto& failure = evidence.job.status.first_failure;
  if (!failure || failure->cause != FailureCause::oom_killed) return {};
  return {{"pod " + names::worker_pod(evidence.job.meta.name, failure->rank) + " of attempt " +
               std::to_string(failure->attempt),
           describe_first_failure(*failure), failure->finished_at}};
}

}  // namespace

Rules exit_rules() {
  Rules rules = {{"OutOfMemory", Stage::failure,
                  "raise resources.limits.memory of the template, or need less: fewer loader "
                  "processes, a smaller batch; /dev/shm counts, too",
                  out_of_memory}};
  for (const End& end : kEnds) {
    rules.push_back({end.cause, Stage::failure, end.remedy,
                     [&end](const Evidence& evidence) { return see_end(evidence, &end); }});
  }
  rules.push_back({"ProgramFailed", Stage::failure,
                   "tj logs {job} --first-failure shows the last lines of that worker",
                   [](const Evidence& evidence) { return see_end(evidence, nullptr); }});
  return rules;
}

}  // namespace tj
