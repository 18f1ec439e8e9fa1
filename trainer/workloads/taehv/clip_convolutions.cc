#include "trainer/workloads/taehv/clip_convolutions.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <array>
#include <tuple>

namespace tj::trainer {
namespace {
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor new_frames(const at::Tensor& like, at::IntArrayRef shape) {
  return at::empty(shape, like.options().memory_format(at::MemoryFormat::ChannelsLast));
}

/// [N T, H, W, C], contiguous; and back.
at::Tensor pixels_of(const at::Tensor& x) { return x.permute({0, 2, 3, 1}); }
at::Tensor frames_of(const at::Tensor& pixels) { return pixels.permute({0, 3, 1, 2}); }

/// Of a convolution with padding 1: by x, by the kernel and by the bias, as far as `wanted`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_of(const at::Tensor& gradient,
                                                            const at::Tensor& x,
                                                            const at::Tensor& kernel,
                                                            std::array<bool, 3> wanted) {
  const std::array<std::int64_t, 1> outputs{kernel.size(0)};
  const std::array<std::int64_t, 2> ones{1, 1}, zeros{0, 0};
  at::OptionalIntArrayRef bias_sizes;
  if (wanted[2]) bias_sizes = at::IntArrayRef(outputs);
  return at::convolution_backward(gradient, x, kernel, bias_sizes, /*stride=*/ones,
                                  /*padding=*/ones, /*dilation=*/ones, /*transposed=*/false,
                                  /*output_padding=*/zeros, /*groups=*/1, wanted);
}

/// [N T, 2 C, H, W]: each frame and the one before it.
at::Tensor with_past(const at::Tensor& x, std::int64_t clips) {
  const auto channels = x.size(1);
  const auto both = new_frames(x, {x.size(0), 2 * channels, x.size(2), x.size(3)});
  both.narrow(1, 0, channels).copy_(x);
  const auto past = both.narrow(1, channels, channels).unflatten(0, {clips, -1});
  past.select(1, 0).zero_();
  past.slice(1, 1).copy_(x.unflatten(0, {clips, -1}).slice(1, 0, -1));
  return both;
}

struct ConvolvedWithPast : torch::autograd::Function<ConvolvedWithPast> {
  enum Input : std::size_t { kX, kWeight, kBias };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, std::int64_t clips) {
    context->save_for_backward({x, weight});
    context->saved_data["clips"] = clips;
    const auto type = x.scalar_type();
    return convolved(with_past(x, clips), weight.to(type), bias.to(type));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& [x, weight] = std::tie(saved[kX], saved[kWeight]);
    const auto clips = context->saved_data["clips"].toInt();
    const auto channels = x.size(1);
    auto [both, kernel, bias] =
        gradients_of(gradients[0], with_past(x, clips), weight.to(x.scalar_type()),
                     {context->needs_input_grad(kX), context->needs_input_grad(kWeight),
                      context->needs_input_grad(kBias)});
    if (both.defined()) {
      // A frame is seen once as itself and once as the past of the next.
      const auto sum = both.narrow(1, 0, channels).clone(at::MemoryFormat::ChannelsLast);
      const auto as_past = both.narrow(1, channels, channels).unflatten(0, {clips, -1});
      sum.unflatten(0, {clips, -1}).slice(1, 0, -1).add_(as_past.slice(1, 1));
      both = sum;
    }
    const auto type = weight.scalar_type();
    return {both,
            kernel.defined() ? kernel.to(type) : kernel,
            bias.defined() ? bias.to(type) : bias,
            {}};
  }
};

// Output rows 2 i and 2 i + 1 of the doubled picture see rows i - 1, i and i, i + 1 of x, the first
// of them the upper with row 0 of the kernel and the lower with rows 1 and 2; the second with rows
// 0 and 1, and 2. Columns are alike.

/// Of a kernel whose dimension `dim` are those three rows: [2 outputs, ..., 2 rows, ...].
at::Tensor halves(const at::Tensor& kernel, std::int64_t dim) {
  const auto one = kernel.select(dim, 0), two = kernel.select(dim, 1),
             three = kernel.select(dim, 2);
  return at::stack({at::stack({one, two + three}, dim), at::stack({one + two, three}, dim)}, 0);
}

/// Gradients back through halves(), from [2 outputs, ..., 2 rows, ...] to those of the three rows.
at::Tensor from_halves(const at::Tensor& gradient, std::int64_t dim) {
  const auto of = [&](std::int64_t output, std::int64_t row) {
    return gradient.select(0, output).select(dim, row);
  };
  return at::stack({of(0, 0) + of(1, 0), of(0, 1) + of(1, 0), of(0, 1) + of(1, 1)}, dim);
}

/// [4 O, C, 2, 2], place by place: of output column b and row a the O kernels from (2 b + a) O on.
at::Tensor kernels_of_places(const at::Tensor& weight, at::ScalarType type) {
  return halves(halves(weight.to(at::kFloat), 2), 4).flatten(0, 2).to(type);
}

at::Tensor weight_from_places(const at::Tensor& kernels, std::int64_t outputs) {
  return from_halves(from_halves(kernels.to(at::kFloat).unflatten(0, {2, 2, outputs}), 4), 2);
}

/// Calls `copy` with the outputs of each place, once among the doubled pixels and once where the
/// convolution by kernels_of_places() has them: [N T, 4 O, H + 1, W + 1].
template <typename Copy>
void for_each_place(const at::Tensor& doubled, const at::Tensor& placed, Copy&& copy) {
  const auto outputs = doubled.size(1), height = doubled.size(2) / 2, width = doubled.size(3) / 2;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t a = 0; a < 2; ++a) {
      copy(doubled.slice(2, a, std::nullopt, 2).slice(3, b, std::nullopt, 2),
           placed.narrow(1, (2 * b + a) * outputs, outputs)
               .narrow(2, a, height)
               .narrow(3, b, width));
    }
  }
}

struct ConvolvedDoubled : torch::autograd::Function<ConvolvedDoubled> {
  enum Input : std::size_t { kX, kWeight };

  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    const auto kernels = kernels_of_places(weight, x.scalar_type());
    const auto placed = at::conv2d(x, kernels, {}, /*stride=*/1, /*padding=*/1);
    const auto made = new_frames(placed, {x.size(0), weight.size(0), 2 * x.size(2), 2 * x.size(3)});
    for_each_place(made, placed,
                   [](const at::Tensor& to, const at::Tensor& from) { to.copy_(from); });
    return made;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto& [x, weight] = std::tie(saved[kX], saved[kWeight]);
    const auto outputs = weight.size(0);
    // What lies at an edge that no place reaches has no gradient.
    const auto placed =
        new_frames(gradients[0], {x.size(0), 4 * outputs, x.size(2) + 1, x.size(3) + 1}).zero_();
    for_each_place(gradients[0], placed,
                   [](const at::Tensor& from, const at::Tensor& to) { to.copy_(from); });
    auto [of_x, kernels, none] =
        gradients_of(placed, x, kernels_of_places(weight, x.scalar_type()),
                     {context->needs_input_grad(kX), context->needs_input_grad(kWeight), false});
    if (kernels.defined()) kernels = weight_from_places(kernels, outputs).to(weight.scalar_type());
    return {of_x, kernels};
  }
};

}  // namespace

at::Tensor channels_last(const at::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     std::int64_t stride) {
  const auto padding = weight.size(-1) / 2, groups = x.size(1) / weight.size(1);
  return at::conv2d(x, weight, bias, stride, padding, /*dilation=*/1, groups);
}

at::Tensor convolved_with_past(const at::Tensor& x, const MemoryKernel& kernel,
                               std::int64_t clips) {
  return ConvolvedWithPast::apply(x, kernel.weight, kernel.bias, clips);
}

at::Tensor convolved_doubled(const at::Tensor& x, const at::Tensor& weight) {
  return ConvolvedDoubled::apply(x, weight);
}

at::Tensor frames_folded(const at::Tensor& x, std::int64_t count) {
  if (count == 1) return x;
  const auto pixels = pixels_of(x).unflatten(0, {-1, count});  // [N T / count, count, H, W, C]
  return frames_of(pixels.permute({0, 2, 3, 1, 4}).flatten(3, 4));
}

at::Tensor frames_unfolded(const at::Tensor& x, std::int64_t count) {
  if (count == 1) return x;
  const auto pixels = pixels_of(x).unflatten(3, {count, -1});  // [N T, H, W, count, C]
  return frames_of(pixels.permute({0, 3, 1, 2, 4}).flatten(0, 1));
}

at::Tensor without_first(const at::Tensor& x, std::int64_t count, std::int64_t clips) {
  if (count == 0) return x;
  return frames_of(pixels_of(x).unflatten(0, {clips, -1}).slice(1, count).flatten(0, 1));
}

}  // namespace tj::trainer
