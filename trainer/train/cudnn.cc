#include "trainer/train/cudnn.h"

#include <ATen/Context.h>

namespace tj::trainer {

void set_up_cudnn(CudnnChoice choice) {
  auto& context = at::globalContext();
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV,
                              at::Float32Precision::IEEE);
  context.setDeterministicCuDNN(choice == CudnnChoice::in_order);
  context.setBenchmarkCuDNN(choice == CudnnChoice::by_trying);
}

}  // namespace tj::trainer
