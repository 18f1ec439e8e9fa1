#include "trainer/workload/initial_tensor.h"

#include <torch/torch.h>

namespace tj::trainer {
namespace {

at::Tensor initial(const TensorSpec& spec, at::Generator& generator, at::Device device) {
  using enum TensorInit::Kind;
  at::Tensor tensor = torch::zeros(spec.shape);
  switch (spec.init.kind) {
    case zeros: break;
    case ones: tensor.fill_(1.0); break;
    case normal: tensor.normal_(0.0, spec.init.scale, generator); break;
    case uniform: tensor.uniform_(-spec.init.scale, spec.init.scale, generator); break;
  }
  return tensor.to(device).requires_grad_(spec.kind == TensorKind::trained);
}

}  // namespace

at::Device device_of(std::optional<int> gpu) {
  if (!gpu) return at::kCPU;
  return {at::kCUDA, static_cast<at::DeviceIndex>(*gpu)};
}

std::vector<at::Tensor> initial_tensors(std::span<const TensorSpec> specs,
                                        const ModelOptions& options, const ModelKeeper& keeper) {
  auto generator = at::detail::createCPUGenerator(options.seed);
  std::vector<at::Tensor> tensors;
  for (const auto& spec : specs) {
    auto tensor = initial(spec, generator, device_of(options.gpu));
    tensors.push_back(keeper.place ? keeper.place(tensors.size(), tensor) : tensor);
  }
  return tensors;
}

}  // namespace tj::trainer
