// `trainer check`: looks at this worker and, with the engine's help, at the links to the others,
// before a training starts. Runs as training does: on every worker, with its variables.
#pragma once
#include "trainer/launch/options.h"

namespace tj::trainer {

/// Prints a table, or one JSON document with --json: of all workers on rank 0, of this worker where
/// the ranks did not meet. Returns the exit code of the worst finding.
int run_check(const CheckOptions& options);

}  // namespace tj::trainer
