#include "trainer/workloads/gpt2/biased_gelu.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include "trainer/workload/column_sums.h"

namespace tj::trainer {
namespace {

#define TJ_KERNELS(...) TJ_KERNEL_TEXT(__VA_ARGS__)
constexpr char kText[] =
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/column_sums.inc"
#include "trainer/workloads/gpt2/gelu_backward.inc"
    ;
#undef TJ_KERNELS

constexpr const char* kKernel = "gelu_backward";

struct BiasedGelu : torch::autograd::Function<BiasedGelu> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, GpuKernels* kernels,
                            const at::Tensor& x, const at::Tensor&) {
    const auto input = x.contiguous();
    context->saved_data["kernels"] = reinterpret_cast<std::int64_t>(kernels);  // outlives training
    context->save_for_backward({input});
    return at::gelu(input, "tanh");
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto& kernels = *reinterpret_cast<GpuKernels*>(context->saved_data["kernels"].toInt());
    const auto x = context->get_saved_variables()[0];
    const auto d_y = gradients[0].contiguous();
    const auto d_x = at::empty_like(x);
    const std::int64_t width = x.size(-1), rows = x.numel() / width;
    const SummedRows of{.options = x.options(), .rows = rows, .width = width, .part_width = width};
    return {
        at::Tensor(), d_x,
        column_sums_by(kernels, kText, kKernel, of, x.data_ptr(), d_y.data_ptr(), d_x.data_ptr())};
  }
};

}  // namespace

GpuKernels* gelu_kernels(GpuKernels* kernels) {
  return kernels != nullptr && kernels->prepare(kText, kKernel) != nullptr ? kernels : nullptr;
}

at::Tensor biased_gelu(GpuKernels& kernels, const at::Tensor& x, const at::Tensor& bias) {
  return BiasedGelu::apply(&kernels, x, bias);
}

}  // namespace tj::trainer
