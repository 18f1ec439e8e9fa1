// Shapes: N tokens, R tokens of a block, C width, V vocabulary, S vocabulary rounded up.
#include "trainer/workloads/gpt2/head_loss.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <cmath>

namespace tj::trainer {
namespace {

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

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& x_NC, const at::Tensor& w_VC,
                            const at::Tensor& targets, std::int64_t ignored) {
    const auto tokens = x_NC.size(0);
    const auto vocabulary = w_VC.size(0);
    const auto stride = logit_stride(x_NC.is_cuda(), vocabulary);
    const auto rows_max = logit_rows(x_NC.is_cuda(), tokens, stride);
    // An ignored token has no part in the gradient of the weights, nor one of its own.
    const auto is_ignored_N = targets.eq(ignored);
    const auto known_NC = x_NC.masked_fill(is_ignored_N.unsqueeze(1), 0);
    const auto block = at::empty({rows_max, stride}, x_NC.options());
    auto dx_NC = at::empty_like(x_NC);
    const bool is_float = x_NC.scalar_type() == at::kFloat;
    auto dw_VC = at::zeros_like(w_VC, w_VC.options().dtype(at::kFloat));
    auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
    for (std::int64_t first = 0; first < tokens; first += rows_max) {
      const auto rows = std::min(rows_max, tokens - first);
      const auto x_RC = known_NC.narrow(0, first, rows);
      const auto product_RS = block.narrow(0, 0, rows);  // with the columns that only fill the row
      auto product_RV = product_RS.narrow(1, 0, vocabulary);
      at::mm_out(product_RV, x_RC, w_VC.t());
      loss.sub_(logit_gradients(product_RS, vocabulary, targets.narrow(0, first, rows),
                                is_ignored_N.narrow(0, first, rows)));
      auto dx_RC = dx_NC.narrow(0, first, rows);
      at::mm_out(dx_RC, product_RV, w_VC);
      if (is_float) {
        dw_VC.addmm_(product_RV.t(), x_RC);
      } else {
        dw_VC.add_(at::mm(product_RV.t(), x_RC));  // the sum over blocks needs more than 8 bits
      }
    }
    dx_NC.masked_fill_(is_ignored_N.unsqueeze(1), 0);
    context->save_for_backward({dx_NC, dw_VC});
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

std::int64_t logit_stride(bool is_gpu, std::int64_t vocabulary) {
  const auto alignment = is_gpu ? kGpuAlignment : kAlignment;
  return (vocabulary + alignment - 1) / alignment * alignment;
}

std::int64_t logit_rows(bool is_gpu, std::int64_t tokens, std::int64_t stride) {
  const auto rows_max = is_gpu ? kGpuRowsMax : kBlockLogitsMax / stride;
  return std::clamp<std::int64_t>(rows_max, 1, tokens);
}

at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored) {
  if (at::GradMode::is_enabled()) return HeadLoss::apply(x_NC, w_VC, targets, ignored);
  auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
  const auto rows_max = logit_rows(x_NC.is_cuda(), x_NC.size(0), w_VC.size(0));
  for (std::int64_t first = 0; first < x_NC.size(0); first += rows_max) {
    const auto rows = std::min(rows_max, x_NC.size(0) - first);
    const auto logits_RV = at::mm(x_NC.narrow(0, first, rows), w_VC.t()).to(at::kFloat);
    loss += at::cross_entropy_loss(logits_RV, targets.narrow(0, first, rows), {},
                                   at::Reduction::Sum, ignored);
  }
  return loss.to(at::kFloat);
}

}  // namespace tj::trainer
