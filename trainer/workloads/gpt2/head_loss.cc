// Shapes: N tokens, R tokens of a block, C width, V vocabulary, S vocabulary rounded up.
#include "trainer/workloads/gpt2/head_loss.h"

#include <torch/torch.h>

#include <cmath>

namespace tj::trainer {
namespace {

constexpr std::int64_t kBlockLogitsMax = 32 << 20;  // 128 MB
/// Rows of the block begin at a multiple of 64 bytes: matrix products are a third faster than with
/// GPT-2's 50257 columns.
constexpr std::int64_t kRowAlignment = 16;

struct HeadLoss : torch::autograd::Function<HeadLoss> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& x_NC, const at::Tensor& w_VC,
                            const at::Tensor& targets, std::int64_t ignored) {
    const auto tokens = x_NC.size(0);
    const auto vocabulary = w_VC.size(0);
    const auto stride = (vocabulary + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
    const auto rows_max = std::clamp<std::int64_t>(kBlockLogitsMax / stride, 1, tokens);
    const auto block = at::empty({rows_max, stride}, x_NC.options());
    auto dx_NC = at::empty_like(x_NC);
    const bool is_float = x_NC.scalar_type() == at::kFloat;
    auto dw_VC = at::zeros_like(w_VC, w_VC.options().dtype(at::kFloat));
    auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
    for (std::int64_t first = 0; first < tokens; first += rows_max) {
      const auto rows = std::min(rows_max, tokens - first);
      const auto x_RC = x_NC.narrow(0, first, rows);
      const auto product_RS = block.narrow(0, 0, rows);  // with the columns that only fill the row
      auto product_RV = product_RS.narrow(1, 0, vocabulary);
      at::mm_out(product_RV, x_RC, w_VC.t());
      auto all_RS = is_float ? product_RS : product_RS.to(at::kFloat);
      auto logits_RV = all_RS.narrow(1, 0, vocabulary);
      if (stride > vocabulary) all_RS.narrow(1, vocabulary, stride - vocabulary).fill_(-INFINITY);
      // On whole rows, since the kernel takes its output for contiguous.
      at::_log_softmax_out(all_RS, all_RS, 1, /*half_to_float=*/false);
      const auto counted = targets.narrow(0, first, rows).ne(ignored);
      const auto of_R1 =
          targets.narrow(0, first, rows).masked_fill(counted.logical_not(), 0).unsqueeze(1);
      const auto weight_R1 = counted.to(at::kFloat).unsqueeze(1);
      loss.sub_(logits_RV.gather(1, of_R1).mul_(weight_R1).sum(at::kDouble));
      all_RS.exp_();
      logits_RV.scatter_add_(1, of_R1, at::full_like(weight_R1, -1.0));
      // A GPU is not asked whether it can be spared: the host would wait for it.
      if (x_NC.is_cuda() || !counted.all().item<bool>()) logits_RV.mul_(weight_R1);
      if (!is_float) product_RV.copy_(logits_RV);
      auto dx_RC = dx_NC.narrow(0, first, rows);
      at::mm_out(dx_RC, product_RV, w_VC);
      if (is_float) {
        dw_VC.addmm_(product_RV.t(), x_RC);
      } else {
        dw_VC.add_(at::mm(product_RV.t(), x_RC));  // the sum over blocks needs more than 8 bits
      }
    }
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

at::Tensor head_loss_sum(const at::Tensor& x_NC, const at::Tensor& w_VC, const at::Tensor& targets,
                         std::int64_t ignored) {
  if (at::GradMode::is_enabled()) return HeadLoss::apply(x_NC, w_VC, targets, ignored);
  auto loss = at::zeros({}, x_NC.options().dtype(at::kDouble));
  const auto rows_max = std::max<std::int64_t>(1, kBlockLogitsMax / w_VC.size(0));
  for (std::int64_t first = 0; first < x_NC.size(0); first += rows_max) {
    const auto rows = std::min(rows_max, x_NC.size(0) - first);
    const auto logits_RV = at::mm(x_NC.narrow(0, first, rows), w_VC.t()).to(at::kFloat);
    loss += at::cross_entropy_loss(logits_RV, targets.narrow(0, first, rows), {},
                                   at::Reduction::Sum, ignored);
  }
  return loss.to(at::kFloat);
}

}  // namespace tj::trainer
