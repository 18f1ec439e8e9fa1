// `trainer encode`, `decode` and `reconstruct`: what a trained TAEHV is for.
#pragma once
#include <span>

#include "trainer/workload/command.h"

namespace tj::trainer {

WorkloadCommand encode_command();
WorkloadCommand decode_command();
WorkloadCommand reconstruct_command();

std::span<const WorkloadCommand> taehv_commands();

}  // namespace tj::trainer
