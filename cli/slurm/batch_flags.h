// The flags of `tj slurm`, checked: what goes into a line of sbatch has no letter that means
// something there. Pure.
#pragma once
#include <string>
#include <vector>

#include "cli/slurm/batch_job.h"
#include "cli/slurm/from_manifest.h"
#include "contract/result.h"

namespace tj::slurm {

/// As given; empty: not.
struct BatchFlags {
  // In place of a manifest.
  std::string name;
  std::string nodes;
  std::string gpus_per_node;
  std::string cpus_per_node;
  std::string tasks_per_node;
  std::string restarts_max;
  std::string port;
  std::vector<std::string> env;
  std::vector<std::string> command;
  // Beside one, too.
  std::string time_limit;
  std::string partition;
  std::string account;
  std::string output_folder;
  std::string signal_seconds;
  std::string container;
  std::string image;
  std::vector<std::string> volumes;         // NAME=FOLDER
  std::vector<std::string> sbatch_options;  // --NAME=VALUE
};

/// The job of flags alone. Fails with Code::invalid; the error names the flag.
Result<BatchJob> from_flags(const BatchFlags& flags);

/// What flags say of where a manifest's job runs.
Result<SlurmPlace> place_of(const BatchFlags& flags);

/// The flags that a manifest's job takes, too.
Result<void> apply(const BatchFlags& flags, BatchJob& job);

}  // namespace tj::slurm
