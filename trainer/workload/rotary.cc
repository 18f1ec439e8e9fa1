#include "trainer/workload/rotary.h"

#include <ATen/Parallel.h>
#include <torch/autograd.h>
#include <torch/types.h>

namespace tj::trainer {
namespace {

constexpr std::int64_t kRowsOfThread = 512;  // fewer are not worth another one

struct Row {
  const float* x;
  const float* cosine;
  const float* sine;
  float* turned;
};

/// Back where `sign` is -1.
void turn(const Row& row, std::int64_t half, float sign) {
  const float* const __restrict x = row.x;
  float* const __restrict turned = row.turned;
  for (std::int64_t i = 0; i < half; ++i) {
    const float cosine = row.cosine[i], sine = sign * row.sine[i];
    turned[i] = x[i] * cosine - x[i + half] * sine;
    turned[i + half] = x[i + half] * cosine + x[i] * sine;
  }
}

/// Where the rows of a tensor [B, heads, T, ...] begin.
template <typename Value>
struct Rows {
  Value* first;
  std::int64_t of_sample, of_head, of_token;

  Rows(Value* data, const at::Tensor& tensor)
      : first(data),
        of_sample(tensor.stride(0)),
        of_head(tensor.stride(1)),
        of_token(tensor.stride(2)) {}
  Value* row(std::int64_t sample, std::int64_t head, std::int64_t token) const {
    return first + sample * of_sample + head * of_head + token * of_token;
  }
};

Rows<const float> rows_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor};
}

at::Tensor with_whole_rows(const at::Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

/// Into `made`, of x's shape. Tensor operations would go over a half of a head at a time.
void turn_all(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, float sign,
              const at::Tensor& made) {
  const auto heads = x.size(1), tokens = x.size(2), half = x.size(3) / 2;
  const std::int64_t angles[] = {x.size(0), heads, tokens, half};
  const auto source = with_whole_rows(x), cosines = with_whole_rows(cosine).expand(angles),
             sines = with_whole_rows(sine).expand(angles);
  const auto from = rows_of(source), by_cosine = rows_of(cosines), by_sine = rows_of(sines);
  const Rows<float> to(made.data_ptr<float>(), made);
  at::parallel_for(0, x.size(0) * heads * tokens, kRowsOfThread,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t row = begin; row < end; ++row) {
                       const auto token = row % tokens, head = row / tokens % heads;
                       const auto sample = row / tokens / heads;
                       turn({.x = from.row(sample, head, token),
                             .cosine = by_cosine.row(sample, head, token),
                             .sine = by_sine.row(sample, head, token),
                             .turned = to.row(sample, head, token)},
                            half, sign);
                     }
                   });
}

struct RotatedByLoop : torch::autograd::Function<RotatedByLoop> {
  using Context = torch::autograd::AutogradContext;

  static at::Tensor forward(Context* context, const at::Tensor& x, const at::Tensor& cosine,
                            const at::Tensor& sine) {
    context->save_for_backward({cosine, sine});
    auto made = torch::empty(x.sizes(), x.options());
    turn_all(x, cosine, sine, 1, made);
    return made;
  }

  static torch::autograd::variable_list backward(Context* context,
                                                 torch::autograd::variable_list gradients) {
    const auto angles = context->get_saved_variables();
    const auto& turned = gradients[0];
    // Token by token, as the product before it has made its heads.
    auto made = torch::empty({turned.size(0), turned.size(2), turned.size(1), turned.size(3)},
                             turned.options())
                    .transpose(1, 2);
    turn_all(turned, angles[0], angles[1], -1, made);
    return {made, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  const bool is_for_loop = x.is_cpu() && x.scalar_type() == at::kFloat;
  return is_for_loop ? rotated_by_loop(x, cosine, sine) : rotated_by_tensors(x, cosine, sine);
}

at::Tensor rotated_by_loop(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  return RotatedByLoop::apply(x, cosine, sine);
}

at::Tensor rotated_by_tensors(const at::Tensor& x, const at::Tensor& cosine,
                              const at::Tensor& sine) {
  const auto halves = x.to(at::kFloat).chunk(2, -1);
  const auto first = halves[0] * cosine - halves[1] * sine;
  const auto second = halves[1] * cosine + halves[0] * sine;
  return at::cat({first, second}, -1).to(x.scalar_type());
}

}  // namespace tj::trainer
