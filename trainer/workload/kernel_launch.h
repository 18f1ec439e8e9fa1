// One call of a kernel that is given as text. Includes torch.
#pragma once
#include <c10/util/Exception.h>

#include <array>
#include <cstdint>

#include "trainer/workload/gpu_kernel.h"

// A file of kernels is TJ_KERNELS(...): included behind `constexpr char kText[] =`, it is a text.
#define TJ_KERNEL_TEXT(...) #__VA_ARGS__

namespace tj::trainer {

constexpr std::int64_t kWarp = 32;            // threads that run together
constexpr std::int64_t kColumnsOfThread = 8;  // of bfloat16, which it reads at once

inline std::int64_t blocks_for(std::int64_t count, std::int64_t per_block) {
  return (count + per_block - 1) / per_block;
}

/// The arguments in order. Throws where the text can't be compiled, and what the GPU says.
template <typename... Arguments>
void launch(GpuKernels& kernels, const char* text, const char* name, const KernelShape& shape,
            Arguments... arguments) {
  const void* const kernel = kernels.prepare(text, name);
  TORCH_CHECK(kernel != nullptr, "the kernel ", name, " can't be compiled");
  std::array<void*, sizeof...(Arguments)> pointers{&arguments...};
  kernels.launch(kernel, shape, pointers);
}

}  // namespace tj::trainer
