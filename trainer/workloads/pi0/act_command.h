// `trainer act`: what a trained policy does next, of what a robot sees.
#pragma once
#include <span>

#include "trainer/workload/command.h"

namespace tj::trainer {

std::span<const WorkloadCommand> pi0_commands();

}  // namespace tj::trainer
