// Kernels from their text, by NVRTC and the driver, which torch has brought in. They are asked for
// by name: a build without CUDA has neither.
#pragma once
#include <string>

#include "trainer/comm/nccl_plugin/abi.h"

namespace tj::trainer {

/// Cached by name; on any thread. Null with the cause in `why`: the compiler's first error, or what
/// is missing.
const void* compile_kernel(const char* text, const char* name, NcclText* why);
bool launch_kernel(const KernelLaunch* launch, NcclText* why);

/// The first line of it.
void write_text(const std::string& words, NcclText* text);

}  // namespace tj::trainer
