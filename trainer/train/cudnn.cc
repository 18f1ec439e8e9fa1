#include "trainer/train/cudnn.h"

#include <ATen/Context.h>

namespace tj::trainer {

void set_up_cudnn(bool is_repeatable) {
  auto& context = at::globalContext();
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV,
                              at::Float32Precision::IEEE);
  context.setDeterministicCuDNN(is_repeatable);
  context.setBenchmarkCuDNN(!is_repeatable);
}

}  // namespace tj::trainer
