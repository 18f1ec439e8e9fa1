#include "trainer/workload/bias_gradient.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include "trainer/workload/column_sums.h"

namespace tj::trainer {
namespace {

#define TJ_KERNELS(...) TJ_KERNEL_TEXT(__VA_ARGS__)
constexpr char kText[] =
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/column_sums.inc"
    ;
#undef TJ_KERNELS

constexpr const char* kKernel = "column_sums";

using Context = torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

GpuKernels& kernels_of(Context* context) {
  return *reinterpret_cast<GpuKernels*>(context->saved_data["kernels"].toInt());
}

struct Whole : torch::autograd::Function<Whole> {
  static at::Tensor forward(Context* context, GpuKernels* kernels, const at::Tensor& y,
                            const at::Tensor&) {
    context->saved_data["kernels"] = reinterpret_cast<std::int64_t>(kernels);  // outlives training
    return y;
  }

  static Tensors backward(Context* context, Tensors gradients) {
    constexpr std::size_t kBias = 1;  // of the tensors among the inputs
    if (!context->needs_input_grad(kBias)) return {at::Tensor(), gradients[0], at::Tensor()};
    const auto d_y = gradients[0].contiguous();
    const std::int64_t width = d_y.size(-1), rows = d_y.numel() / width;
    void* const none = nullptr;
    const SummedRows of{
        .options = d_y.options(), .rows = rows, .width = width, .part_width = width};
    return {
        at::Tensor(), d_y,
        column_sums_by(kernels_of(context), kText, kKernel, of, d_y.data_ptr(), none, none, none)};
  }
};

struct Thirds : torch::autograd::Function<Thirds> {
  static Tensors forward(Context* context, GpuKernels* kernels, const at::Tensor& y,
                         const at::Tensor&) {
    context->saved_data["kernels"] = reinterpret_cast<std::int64_t>(kernels);  // outlives training
    return y.split(y.size(-1) / 3, -1);
  }

  /// The gradient of y is written by the kernel that sums it.
  static Tensors backward(Context* context, Tensors gradients) {
    for (auto& gradient : gradients) gradient = gradient.contiguous();
    auto sizes = gradients[0].sizes().vec();
    const std::int64_t part_width = sizes.back(), width = 3 * part_width;
    sizes.back() = width;
    const auto options = gradients[0].options();
    const auto d_y = at::empty(sizes, options);
    const SummedRows of{
        .options = options, .rows = d_y.numel() / width, .width = width, .part_width = part_width};
    return {at::Tensor(), d_y,
            column_sums_by(kernels_of(context), kText, kKernel, of, gradients[0].data_ptr(),
                           gradients[1].data_ptr(), gradients[2].data_ptr(), d_y.data_ptr())};
  }
};

}  // namespace

GpuKernels* bias_kernels(const at::Tensor& x, std::int64_t width) {
  auto* const kernels = gpu_kernels();
  const bool fits = at::GradMode::is_enabled() && x.is_cuda() && x.scalar_type() == at::kBFloat16 &&
                    width % kColumnsOfThread == 0;
  if (!fits || kernels == nullptr) return nullptr;
  return kernels->prepare(kText, kKernel) != nullptr ? kernels : nullptr;
}

at::Tensor with_bias_gradient(GpuKernels& kernels, const at::Tensor& y, const at::Tensor& bias) {
  return Whole::apply(&kernels, y, bias);
}

std::array<at::Tensor, 3> thirds_with_bias_gradient(GpuKernels& kernels, const at::Tensor& y,
                                                    const at::Tensor& bias) {
  const auto parts = Thirds::apply(&kernels, y, bias);
  return {parts[0], parts[1], parts[2]};
}

}  // namespace tj::trainer
