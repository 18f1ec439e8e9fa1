#include "trainer/workload/read_weights.h"

#include <torch/types.h>

#include <utility>

#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {

Result<std::vector<at::Tensor>> read_weights(const TensorReader& reader,
                                             std::span<const TensorSpec> specs,
                                             const ModelOptions& options) {
  std::vector<at::Tensor> weights;
  for (const auto& spec : specs) {
    auto weight = torch::empty(spec.shape);
    const std::span floats(weight.data_ptr<float>(), static_cast<std::size_t>(weight.numel()));
    const auto read = reader({.name = spec.name, .shape = spec.shape, .floats = floats});
    if (!read) return read.error();
    weights.push_back(weight.to(device_of(options.gpu), type_of(options.precision)));
  }
  return weights;
}

}  // namespace tj::trainer
