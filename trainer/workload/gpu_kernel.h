// Kernels that a GPU's own compiler makes of their text at the first use: what torch has no
// operation for, without a CUDA compiler in the build. Torch-free.
#pragma once
#include <cstdint>
#include <span>

namespace tj::trainer {

struct KernelShape {
  std::int64_t blocks = 1;    // grid, x
  std::int64_t blocks_y = 1;  // grid, y
  std::int64_t threads = 1;   // of a block
};

class GpuKernels {
 public:
  virtual ~GpuKernels() = default;
  /// The function `name`, extern "C", of a text in CUDA C++ that includes nothing. Null, and said
  /// why, where it can't be compiled. Valid as long as this.
  virtual const void* prepare(const char* text, const char* name) = 0;
  /// In the stream of this thread. `arguments` are pointers to the values. Throws what the GPU
  /// says.
  virtual void launch(const void* kernel, const KernelShape& shape, std::span<void*> arguments) = 0;
};

/// Call before training; outlives it. Null, as at the beginning: there are none.
void use_gpu_kernels(GpuKernels* kernels);
GpuKernels* gpu_kernels();

}  // namespace tj::trainer
