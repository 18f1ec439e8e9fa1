// A TrainingJob's manifest as a job of SLURM. Pure. Whatever has no place there is said, by its
// path.
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/slurm/batch_job.h"
#include "contract/result.h"

namespace tj::slurm {

/// What the manifest can't say.
struct SlurmPlace {
  Runtime runtime = Runtime::none;
  std::map<std::string, std::string> volumes;  // by name: the folder of the nodes that it is
};

/// `manifest` must be valid (validate.h). Fails with Code::invalid where no script can do what it
/// says; the message has a line for each field.
Result<BatchJob> from_manifest(const nlohmann::json& manifest, const SlurmPlace& place);

}  // namespace tj::slurm
