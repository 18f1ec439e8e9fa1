// Kernels from their text, by NVRTC and the driver, which torch has brought in. They are asked for
// by name: a build without CUDA has neither.
#pragma once
#include "trainer/comm/nccl_plugin/abi.h"

namespace tj::trainer {

/// The text is compiled once. On any thread. Null with the cause in `why`: the compiler's first
/// error, or what is missing.
const void* compile_kernel(const char* text, const char* name, PluginText* why);
bool launch_kernel(const KernelLaunch* launch, PluginText* why);

}  // namespace tj::trainer
