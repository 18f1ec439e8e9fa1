#include "trainer/workload/gpu_kernel.h"

namespace tj::trainer {
namespace {
GpuKernels* used = nullptr;
}

void use_gpu_kernels(GpuKernels* kernels) { used = kernels; }
GpuKernels* gpu_kernels() { return used; }

}  // namespace tj::trainer
