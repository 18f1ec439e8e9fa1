// A BatchJob as the text of a batch script. Pure. Whatever its texts are, the script runs the
// command and nothing else: each stands in quotes, or was checked before.
#pragma once
#include <string>

#include "cli/slurm/batch_job.h"

namespace tj::slurm {

std::string batch_script(const BatchJob& job);

}  // namespace tj::slurm
