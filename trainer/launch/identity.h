// Who this worker, or this process, is: found in the environment or the flags by one set of rules,
// each value with its origin. Pure: the machine's facts come in as WorkerHost. The rules are
// described in docs/launching.md.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contract/launch_env.h"
#include "contract/result.h"

namespace tj::trainer {

inline constexpr int kNprocMax = 1024;

/// A value and where it came from: a variable, a flag, or "computed: ...".
template <typename T>
struct Fact {
  T value{};
  std::string origin;
  bool operator==(const Fact&) const = default;
};

/// What the variables of a job count, and who has set them.
enum class Convention {
  flags,      // --world-size and its companions, by hand
  processes,  // RANK and WORLD_SIZE count processes: a launcher has started this one
  workers,    // RANK and WORLD_SIZE count workers: the operator, or a platform like it
  pet,        // PET_NNODES and PET_NODE_RANK, torchrun's own
  nnodes,     // NNODES and NODE_RANK
  slurm,      // a task of a SLURM step
  none,       // nothing is set: one worker alone
};
std::string_view to_string(Convention convention);
/// The value of --convention; absent for any other word, `flags` included.
std::optional<Convention> convention_named(std::string_view word);

/// How the number of processes on this worker is found.
struct NprocChoice {
  enum class Source {
    environment,    // what the convention says, else the devices
    count_devices,  // --nproc auto
    fixed,          // --nproc N
  };
  Source source = Source::environment;
  int count = 0;  // only for Source::fixed
  bool operator==(const NprocChoice&) const = default;
};

/// The flags with which a person says by hand who this is. Ranks and sizes count processes.
struct PlaceFlags {
  std::optional<int> world_size;
  std::optional<int> gpus_per_node;
  std::optional<int> rank;
  std::optional<int> local_rank;
  std::optional<int> node_rank;
  std::optional<int> master_port;
  std::optional<std::string> master_addr;
  bool operator==(const PlaceFlags&) const = default;
};

struct IdentityOptions {
  PlaceFlags place;
  std::optional<Convention> convention;  // absent: found by the rules
  NprocChoice nproc;
  bool operator==(const IdentityOptions&) const = default;
};

/// What the machine offers.
struct WorkerHost {
  int gpus = 0;       // visible ones
  int cores = 1;      // usable ones
  int free_port = 0;  // of 127.0.0.1, for a worker that is alone
  std::string name;
};

struct IdentityRequest {
  const EnvLookup& lookup;
  const WorkerHost& host;
  IdentityOptions options = {};
  bool is_process = false;  // the caller trains itself: it will be one process, not a launcher
};

struct Identity {
  Convention convention = Convention::none;
  std::string because;             // what decided for the convention
  std::vector<std::string> notes;  // what else was seen, and why it was not followed
  // WORLD_SIZE is taken to count workers, but could count processes as well: only it and RANK are
  // set, and it could fill whole nodes with their GPUs. A launcher asks the others (statements.h).
  bool is_ambiguous = false;
  // A platform runs the same script on each node and sets WORLD_SIZE and RANK; there is no operator
  // of ours.
  bool is_on_platform = false;
  Fact<int> worker_count;
  Fact<int> worker_index;
  Fact<int> nproc;  // processes on each worker
  // Set together, when the convention speaks of one process: a launcher starts only this one.
  std::optional<Fact<int>> rank;
  std::optional<Fact<int>> local_rank;
  std::optional<Fact<int>> cores;  // of that process alone, where the convention gives it some
  Fact<std::string> master_addr;
  Fact<int> master_port;
  Fact<std::string> job_uid;  // with attempt: the rendezvous key; empty outside of a job
  Fact<int> attempt;
  Fact<std::string> node_name;

  int world_size() const { return worker_count.value * nproc.value; }  // processes of the job
};

/// Fails with Code::invalid; the error names the variable or flag, its value and what is right.
Result<Identity> identify(const IdentityRequest& request);

/// "WORLD_SIZE and RANK", "SLURM", "no launch variables": in one line of a log.
std::string_view source_of(Convention convention);

}  // namespace tj::trainer
