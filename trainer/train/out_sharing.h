// Whether all ranks see the same --out: proved with a file, so that each may write its part of a
// checkpoint there.
#pragma once
#include <filesystem>
#include <string>

#include "trainer/checkpoint/claim.h"
#include "trainer/comm/communicator.h"
#include "trainer/values/settings.h"

namespace tj::trainer {

struct OutSharing {
  std::string run_id;      // random, the same on all ranks: names the drafts of this run
  bool is_shared = false;  // all ranks can write where rank 0 writes
  Setting setting;         // how it is said in the table
};

/// Collective. Rank 0 sweeps the drafts of dead runs, while `claim` holds, and leaves a file; the
/// others look for it.
OutSharing prove_sharing(Communicator& communicator, const std::filesystem::path& out,
                         const OutClaim& claim, const std::string& node_name);

}  // namespace tj::trainer
