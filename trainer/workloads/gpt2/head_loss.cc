// Shapes: N tokens, R tokens of a block, C width, V vocabulary, S vocabulary rounded up, P the
// columns that are computed: V in float32, S in bfloat16.
#include "trainer/workloads/gpt2/head_loss.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "trainer/workload/kernel_launch.h"

namespace tj::trainer {
namespace {

#define TJ_KERNELS(...) TJ_KERNEL_TEXT(__VA_ARGS__)
constexpr char kText[] =
#include "trainer/workload/bfloat16_pairs.inc"
#include "trainer/workloads/gpt2/logit_gradients.inc"
    ;
#undef TJ_KERNELS

constexpr const char* kKernel = "logit_gradients";
constexpr std::int64_t kThreadsMax = 1024;

constexpr std::int64_t kBlockLogitsMax = 32 << 20;  // 128 MB
/// Logits of a token begin at a multiple of 64 bytes: matrix products are a third faster than with
/// GPT-2's 50257 columns.
constexpr std::int64_t kAlignment = 16;
/// Of 8192 tokens GPT-2's logits take 2.5 GB, in both types, and the gradient of the weights, which
/// each block reads and writes, is added to a few times only. Products have tiles of 128 rows.
constexpr std::int64_t kGpuRowsMax = 8192;
constexpr std::int64_t kGpuAlignment = 64;  // 128 bytes of bfloat16, and GPT-2's usual 50304

/// Makes of logits in `product_RS` their gradients, and gives the sum of log-probabilities of the
/// targets that are not ignored, in float64. Those of ignored tokens mean nothing.
at::Tensor logit_gradients(const at::Tensor& product_RS, std::int64_t vocabulary,
                           const at::Tensor& targets_R, const at::Tensor& is_ignored_R) {
  const auto stride = product_RS.size(1);
  const bool is_float = product_RS.scalar_type() == at::kFloat;
  auto all_RS = is_float ? product_RS : product_RS.to(at::kFloat);
  auto logits_RV = all_RS.narrow(1, 0, vocabulary);
  if (stride > vocabulary) all_RS.narrow(1, vocabulary, stride - vocabulary).fill_(-INFINITY);
  // On whole rows, since the kernel takes its output for contiguous.
  at::_log_softmax_out(all_RS, all_RS, 1, /*half_to_float=*/false);
  const auto of_R1 = targets_R.masked_fill(is_ignored_R, 0).unsqueeze(1);
  const auto own_R1 = logits_RV.gather(1, of_R1);
  auto sum = own_R1.masked_fill(is_ignored_R.unsqueeze(1), 0).sum(at::kDouble);
  if (is_float) {
    all_RS.exp_();
    logits_RV.scatter_add_(1, of_R1, at::full_like(own_R1, -1.0));
  } else {
    // Rounded as it is written. Of a probability near 1 the difference would be lost then.
    auto gradients_RS = product_RS;
    at::exp_out(gradients_RS, all_RS);
    gradients_RS.narrow(1, 0, vocabulary)
        .scatter_(1, of_R1, own_R1.exp().sub_(1).to(gradients_RS.scalar_type()));
  }
  return sum;
}

std::int64_t rounded_up(std::int64_t count, std::int64_t multiple) {
  return blocks_for(count, multiple) * multiple;
}

/// As many as have work in the last turn, too.
std::int64_t threads_for(std::int64_t eights) {
  const auto turns = rounded_up(eights, kThreadsMax) / kThreadsMax;
  return rounded_up(eights, turns * kWarp) / turns;
}

/// Null: torch's operations do it.
GpuKernels* kernels_for(const at::Tensor& x) {
  auto* const kernels = gpu_kernels();
  const bool fits = x.is_cuda() && x.scalar_type() == at::kBFloat16 && kernels != nullptr;
  return fits && kernels->prepare(kText, kKernel) != nullptr ? kernels : nullptr;
}

/// The weights in x's type. In bfloat16 with rows of zeros up to the stride: with GPT-2's 50257
/// rows the products take four times as long on an H100.
at::Tensor weights_for(const at::Tensor& x_NC, const at::Tensor& w_VC) {
  if (x_NC.scalar_type() == at::kFloat) return w_VC;
  const auto stride = logit_stride(x_NC.is_cuda(), w_VC.size(0));
  const auto all_SC = at::empty({stride, w_VC.size(1)}, w_VC.options().dtype(at::kBFloat16));
  all_SC.narrow(0, 0, w_VC.size(0)).copy_(w_VC);
  all_SC.narrow(0, w_VC.size(0), stride - w_VC.size(0)).zero_();
  return all_SC;
}

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& x_NC, const at::Tensor& w_VC,
                            const at::Tensor& targets, std::int64_t ignored) {
    const auto tokens = x_NC.size(0);
    const auto vocabulary = w_VC.size(0);
    const auto stride = logit_stride(x_NC.is_cuda(), vocabulary);
    const auto rows_max = logit_rows(x_NC.is_cuda(), tokens, stride);
    auto* const kernels = kernels_for(x_NC);
    // An ignored token has no part in the gradient of the weights, nor one of its own. The kernel
    // sees to that.
    const auto is_ignored_N = targets.eq(ignored);
    const auto known_NC = kernels ? x_NC : x_NC.masked_fill(is_ignored_N.unsqueeze(1), 0);
    const bool is_float = x_NC.scalar_type() == at::kFloat;
    const auto w_PC = weights_for(x_NC, w_VC);
    const auto columns = w_PC.size(0);
    const auto block = at::empty({rows_max, stride}, x_NC.options());
    auto dx_NC = at::empty_like(x_NC);
    auto dw_PC = at::zeros_like(w_PC, w_PC.options().dtype(at::kFloat));
    auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
    for (std::int64_t first = 0; first < tokens; first += rows_max) {
      const auto rows = std::min(rows_max, tokens - first);
      const auto x_RC = known_NC.narrow(0, first, rows);
      const auto targets_R = targets.narrow(0, first, rows);
      const auto product_RS = block.narrow(0, 0, rows);  // with the columns that only fill the row
      auto product_RP = product_RS.narrow(1, 0, columns);
      at::mm_out(product_RP, x_RC, w_PC.t());
      if (kernels) {
        loss.sub_(logit_gradients_by_kernel(*kernels, product_RS, vocabulary, targets_R, ignored)
                      .sum(at::kDouble));
      } else {
        loss.sub_(logit_gradients(product_RS, vocabulary, targets_R,
                                  is_ignored_N.narrow(0, first, rows)));
      }
      auto dx_RC = dx_NC.narrow(0, first, rows);
      at::mm_out(dx_RC, product_RP, w_PC);
      if (is_float) {
        dw_PC.addmm_(product_RP.t(), x_RC);
      } else {
        dw_PC.add_(at::mm(product_RP.t(), x_RC));  // the sum over blocks needs more than 8 bits
      }
    }
    if (!kernels) dx_NC.masked_fill_(is_ignored_N.unsqueeze(1), 0);
    context->save_for_backward({dx_NC, dw_PC.narrow(0, 0, vocabulary)});
    return loss.to(at::kFloat);
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const auto made = context->get_saved_variables();
    // A scalar of another type changes none of its factor's.
    return {made[0] * gradients[0], made[1] * gradients[0], at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor logit_gradients_by_kernel(GpuKernels& kernels, const at::Tensor& logits_RS,
                                     std::int64_t vocabulary, const at::Tensor& targets_R,
                                     std::int64_t ignored) {
  const auto rows = logits_RS.size(0), stride = logits_RS.size(1);
  const auto targets = targets_R.contiguous();
  const auto log_probabilities = at::empty({rows}, logits_RS.options().dtype(at::kFloat));
  launch(kernels, kText, kKernel,
         {.blocks = rows, .threads = threads_for(stride / kColumnsOfThread)}, logits_RS.data_ptr(),
         targets.data_ptr(), log_probabilities.data_ptr(), static_cast<long long>(vocabulary),
         static_cast<long long>(stride), static_cast<long long>(ignored));
  return log_probabilities;
}

std::int64_t logit_stride(bool is_gpu, std::int64_t vocabulary) {
  return rounded_up(vocabulary, is_gpu ? kGpuAlignment : kAlignment);
}

std::int64_t logit_rows(bool is_gpu, std::int64_t tokens, std::int64_t stride) {
  const auto rows_max = is_gpu ? kGpuRowsMax : kBlockLogitsMax / stride;
  return std::clamp<std::int64_t>(rows_max, 1, tokens);
}

at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored) {
  if (at::GradMode::is_enabled()) return HeadLoss::apply(x_NC, w_VC, targets, ignored);
  auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
  const auto vocabulary = w_VC.size(0);
  const auto w_PC = weights_for(x_NC, w_VC);
  const auto rows_max = logit_rows(x_NC.is_cuda(), x_NC.size(0), w_PC.size(0));
  for (std::int64_t first = 0; first < x_NC.size(0); first += rows_max) {
    const auto rows = std::min(rows_max, x_NC.size(0) - first);
    const auto product_RP = at::mm(x_NC.narrow(0, first, rows), w_PC.t());
    const auto logits_RV = product_RP.narrow(1, 0, vocabulary).to(at::kFloat);
    loss += at::cross_entropy_loss(logits_RV, targets.narrow(0, first, rows), {},
                                   at::Reduction::Sum, ignored);
  }
  return loss.to(at::kFloat);
}

}  // namespace tj::trainer
