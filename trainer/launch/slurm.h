// What SLURM has set: an allocation, a shell in it, or a task of a step. Pure.
#pragma once
#include <optional>
#include <string>

#include "contract/launch_env.h"

namespace tj::trainer {

struct SlurmSight {
  bool is_there = false;   // SLURM_JOB_ID is set
  bool has_tasks = false;  // one of several tasks that srun has started
  std::string why;         // what decided: for people
};

/// A shell in an allocation (salloc, srun --pty, a batch script) has many of the variables of a
/// task, and only that one process would come: it is no reason to wait for others
/// (Lightning#20391, #17252).
SlurmSight look_for_slurm(const EnvLookup& lookup);

}  // namespace tj::trainer
