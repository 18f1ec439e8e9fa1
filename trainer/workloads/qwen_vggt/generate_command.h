// `trainer generate`: what a trained Qwen2.5-VL answers, of pictures and text.
#pragma once
#include <span>

#include "trainer/workload/command.h"

namespace tj::trainer {

std::span<const WorkloadCommand> qwen_vggt_commands();

}  // namespace tj::trainer
