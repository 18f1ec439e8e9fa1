// What workloads compute on a GPU by kernels of their own: made and launched by the plug-in.
#pragma once
#include "trainer/comm/accelerator.h"

namespace tj::trainer {

/// Call once, before training. Does nothing on the CPU.
void use_kernels_of(const Accelerator& accelerator);

}  // namespace tj::trainer
