#include "trainer/workload/residual_norm.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <optional>

#include "trainer/workload/kernel_launch.h"

namespace tj::trainer {
namespace {

#define TJ_KERNELS(...) TJ_KERNEL_TEXT(__VA_ARGS__)
constexpr char kText[] =
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workload/residual_norm.inc"
    ;
#undef TJ_KERNELS

constexpr const char* kForward = "residual_norm_forward";
constexpr const char* kBackward = "residual_norm_backward";

constexpr std::int64_t kThreadsMax = 512;  // of a block, each with eight columns
constexpr int kBlockRows = 32;             // with fewer there are more rows of sums to add up

bool fits_kernel(std::int64_t width) {
  return width % kColumnsOfThread == 0 && width <= kColumnsOfThread * kThreadsMax;
}

KernelShape shape_for(std::int64_t rows, std::int64_t width) {
  return {.blocks = blocks_for(rows, kBlockRows),
          .threads = blocks_for(width / kColumnsOfThread, kWarp) * kWarp};
}

/// Null: the tensor is not there.
void* pointer(const at::Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }

struct ByKernel : torch::autograd::Function<ByKernel> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;
  enum Input : std::size_t { kKernels, kX, kBranch, kWeight, kBias, kEps, kInputs };

  /// normed and the sum, which without a branch is x.
  static Tensors forward(Context* context, GpuKernels* kernels, const at::Tensor& x,
                         const std::optional<at::Tensor>& branch, const at::Tensor& weight,
                         const at::Tensor& bias, double eps) {
    const auto stream = x.contiguous();
    const auto added = branch ? branch->contiguous() : at::Tensor();
    const auto scale = weight.contiguous(), shift = bias.contiguous();
    const std::int64_t width = stream.size(-1), rows = stream.numel() / width;
    const auto sum = branch ? at::empty_like(stream) : stream;
    auto normed = at::empty_like(stream);
    const auto numbers = stream.options().dtype(at::kFloat);
    const auto means = at::empty({rows}, numbers), inverse_deviations = at::empty({rows}, numbers);
    launch(*kernels, kText, kForward, shape_for(rows, width), pointer(stream), pointer(added),
           pointer(scale), pointer(shift), branch ? pointer(sum) : nullptr, pointer(normed),
           pointer(means), pointer(inverse_deviations), static_cast<long long>(rows),
           static_cast<long long>(width / kColumnsOfThread), kBlockRows, static_cast<float>(eps));
    context->saved_data["kernels"] = reinterpret_cast<std::int64_t>(kernels);  // outlives training
    context->saved_data["branch"] = branch.has_value();
    // An output must be kept as one, or the graph would keep itself alive.
    context->save_for_backward({sum, scale, means, inverse_deviations});
    return {normed, branch ? sum : x};
  }

  static Tensors backward(Context* context, Tensors gradients) {
    auto& kernels = *reinterpret_cast<GpuKernels*>(context->saved_data["kernels"].toInt());
    const auto saved = context->get_saved_variables();
    const auto &sum = saved[0], &weight = saved[1], &means = saved[2], &deviations = saved[3];
    const auto d_normed = gradients[0].defined() ? gradients[0].to(sum.scalar_type()).contiguous()
                                                 : torch::zeros_like(sum);
    const bool has_branch = context->saved_data["branch"].toBool();
    const auto d_sum =
        gradients[1].defined() ? gradients[1].to(sum.scalar_type()).contiguous() : at::Tensor();
    const std::int64_t width = sum.size(-1), rows = sum.numel() / width;
    const auto d_x = at::empty_like(sum);
    const auto shape = shape_for(rows, width);
    const auto columns = at::empty({shape.blocks, 2, width}, weight.options());
    launch(kernels, kText, kBackward, shape, pointer(d_normed), pointer(d_sum), pointer(sum),
           pointer(weight), pointer(means), pointer(deviations), pointer(d_x), pointer(columns),
           static_cast<long long>(rows), static_cast<long long>(width / kColumnsOfThread),
           kBlockRows);
    const auto summed = columns.sum(0);
    Tensors result(kInputs);
    result[kX] = d_x;
    if (has_branch) result[kBranch] = d_x;
    result[kWeight] = summed[0];
    result[kBias] = summed[1];
    return result;
  }
};

bool is_for_kernel(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && gpu_kernels() != nullptr &&
         fits_kernel(x.size(-1));
}

at::Tensor norm_by_torch(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight.to(at::kFloat), bias.to(at::kFloat), eps);
}

}  // namespace

at::ScalarType residual_type(Precision precision, at::Device device, std::int64_t width) {
  auto* const kernels = gpu_kernels();
  const bool fits = precision == Precision::bf16 && device.is_cuda() && fits_kernel(width);
  if (!fits || kernels == nullptr) return at::kFloat;
  for (const char* const name : {kForward, kBackward})
    if (kernels->prepare(kText, name) == nullptr) return at::kFloat;
  return at::kBFloat16;
}

ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                           const at::Tensor& bias, double eps) {
  if (is_for_kernel(x) && branch.scalar_type() == at::kBFloat16)
    return residual_norm_by_kernel(*gpu_kernels(), x, branch, weight.to(at::kFloat),
                                   bias.to(at::kFloat), eps);
  const auto sum = x + branch;
  return {.sum = sum, .normed = norm_by_torch(sum, weight, bias, eps)};
}

ResidualNorm residual_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           double eps) {
  if (!is_for_kernel(x)) return {.sum = x, .normed = norm_by_torch(x, weight, bias, eps)};
  return residual_norm_by_kernel(*gpu_kernels(), x, {}, weight.to(at::kFloat), bias.to(at::kFloat),
                                 eps);
}

ResidualNorm residual_norm_by_kernel(GpuKernels& kernels, const at::Tensor& x,
                                     const at::Tensor& branch, const at::Tensor& weight,
                                     const at::Tensor& bias, double eps) {
  const auto made = ByKernel::apply(
      &kernels, x, branch.defined() ? std::optional(branch) : std::nullopt, weight, bias, eps);
  return {.sum = made[1], .normed = made[0]};
}

}  // namespace tj::trainer
