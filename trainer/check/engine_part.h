// The part of `trainer check` that needs the other ranks: `trainer-engine check`, started by
// `trainer check` once for each process of the worker. It gets what the worker has found in a
// variable, meets the others as training would, measures, and prints one JSON document: on rank 0
// the whole report, on the first process of each other worker the result.
#pragma once

namespace tj::trainer {

/// Seconds that ranks wait for each other, and what `trainer check` has found, for the first
/// process of each worker.
inline constexpr const char* kEnvCheckWait = "TRAININGJOB_CHECK_WAIT_SECONDS";
inline constexpr const char* kEnvCheckFacts = "TRAININGJOB_CHECK_FACTS";

/// Returns the exit code; the cause of a failure is in the termination message.
int run_check_engine();

}  // namespace tj::trainer
