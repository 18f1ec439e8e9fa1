#include "trainer/workload/initial_tensor.h"

#include <torch/types.h>

namespace tj::trainer {
namespace {

/// [out, in]: what each output has of each input.
at::Tensor passed_on(std::int64_t out, std::int64_t in) {
  if (in <= out) return torch::eye(in).repeat({(out + in - 1) / in, 1}).slice(0, 0, out);
  const auto several = torch::eye(out).repeat({1, (in + out - 1) / out}).slice(1, 0, in);
  return several / several.sum(1, /*keepdim=*/true);
}

/// Adds it to the weight [out, in, height, width] of a convolution.
void add_dirac(at::Tensor& weight, std::int64_t repeats) {
  auto middle = weight.select(3, weight.size(3) / 2).select(2, weight.size(2) / 2);
  middle += passed_on(weight.size(0) / repeats, weight.size(1)).repeat_interleave(repeats, 0);
}

at::Tensor initial(const TensorSpec& spec, at::Generator& generator, at::Device device) {
  using enum TensorInit::Kind;
  at::Tensor tensor = torch::zeros(spec.shape);
  switch (spec.init.kind) {
    case zeros: break;
    case ones: tensor.fill_(1.0); break;
    case constant: tensor.fill_(spec.init.scale); break;
    case normal: tensor.normal_(0.0, spec.init.scale, generator); break;
    case dirac:
      tensor.normal_(0.0, spec.init.scale, generator);
      add_dirac(tensor, spec.init.repeats);
      break;
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
