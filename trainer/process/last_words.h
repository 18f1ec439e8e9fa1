// Writes the termination message, so that the operator and `kubectl describe` know the cause. Best
// effort: never fails.
#pragma once
#include "contract/outcome.h"

namespace tj::trainer {

/// Writes to TRAININGJOB_TERMINATION_LOG, else to /dev/termination-log if that file exists, else
/// nowhere.
void write_last_words(const Outcome& outcome) noexcept;

}  // namespace tj::trainer
