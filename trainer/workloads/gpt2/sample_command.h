// `trainer sample`: what a trained GPT-2 is for.
#pragma once
#include <span>

#include "trainer/workload/command.h"

namespace tj::trainer {

std::span<const WorkloadCommand> gpt2_commands();

}  // namespace tj::trainer
