#include "trainer/workload/draws.h"

#include <torch/types.h>

#include <ATen/Parallel.h>

#include <array>
#include <cmath>
#include <utility>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kWordsOfBlock = 4;
constexpr std::int64_t kMask = 0xFFFFFFFF;
constexpr double kTwoTo32 = 4294967296.0;
/// A try of Marsaglia and Tsang's is taken 19 times of 20; that none of these is has the
/// probability 1e-20, and the last one stands in.
constexpr std::int64_t kGammaTries = 16;

std::int64_t low(std::uint64_t value) { return static_cast<std::int64_t>(value & kMask); }
std::int64_t high(std::uint64_t value) { return static_cast<std::int64_t>(value >> 32); }

/// High and low 32 bits of `factor` times `word`. Their int64 wraps around on every device, which
/// changes none of the 64 bits; the shift then copies the sign, and the mask takes that off.
std::pair<at::Tensor, at::Tensor> product(std::int64_t factor, const at::Tensor& word) {
  const auto whole = word * factor;
  return {whole.bitwise_right_shift(32).bitwise_and(kMask), whole.bitwise_and(kMask)};
}

std::int64_t elements_of_row(at::IntArrayRef shape) {
  std::int64_t count = 1;
  for (const auto extent : shape.slice(1)) count *= extent;
  return count;
}

WordKernel& word_kernel() {
  static WordKernel kernel;
  return kernel;
}

at::Tensor words_on_device(const Draw& draw, std::int64_t rows, std::int64_t count,
                           at::Device device) {
  if (!word_kernel()) return words_by_tensors(draw, rows, count, device);
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  auto words = word_kernel()(draw, torch::arange(count, options).unsqueeze(0),
                             (torch::arange(rows, options) + draw.first_sample).unsqueeze(1));
  if (words.defined()) return words;
  word_kernel() = nullptr;
  return words_by_tensors(draw, rows, count, device);
}

at::Tensor words(const Draw& draw, std::int64_t rows, std::int64_t count, at::Device device) {
  return device.is_cpu() ? words_by_loop(draw, rows, count)
                         : words_on_device(draw, rows, count, device);
}

/// Calls take(index, word) for each word of the rows, which `index` counts one after the other.
template <typename Take>
void for_words(const Draw& draw, std::int64_t rows, std::int64_t count, const Take& take) {
  at::parallel_for(0, rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto sample = static_cast<std::uint64_t>(draw.first_sample + row);
      for (std::int64_t first = 0; first < count; first += kWordsOfBlock) {
        const auto block = static_cast<std::uint32_t>(first / kWordsOfBlock);
        const auto four = philox4x32(
            {block, draw.purpose, static_cast<std::uint32_t>(sample),
             static_cast<std::uint32_t>(sample >> 32)},
            {static_cast<std::uint32_t>(draw.seed), static_cast<std::uint32_t>(draw.seed >> 32)});
        for (std::int64_t i = 0; i < kWordsOfBlock && first + i < count; ++i)
          take(row * count + first + i, four[static_cast<std::size_t>(i)]);
      }
    }
  });
}

/// float64 in (0, 1).
at::Tensor unit_interval(const at::Tensor& words) {
  return (words.to(at::kDouble) + 0.5) / kTwoTo32;
}

at::Tensor normal_of(const at::Tensor& one, const at::Tensor& other) {
  return (-2 * unit_interval(one).log()).sqrt() * (2 * M_PI * unit_interval(other)).cos();
}

/// float64 [rows, count]: gamma variates from words [rows, count, kGammaTries, 4].
at::Tensor gamma_of(double shape, const at::Tensor& words) {
  // Below 1: of shape + 1, times u^(1 / shape).
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const auto x = normal_of(words.select(-1, 0), words.select(-1, 1));
  const auto v = (1 + x / std::sqrt(9 * d)).pow(3);
  const auto u = unit_interval(words.select(-1, 2));
  const auto safe_v = v.clamp_min(1e-300);
  const auto is_taken =
      v.gt(0).logical_and(u.log().lt(0.5 * x.square() + d - d * v + d * safe_v.log()));
  const auto first = is_taken.to(at::kLong).argmax(-1, /*keepdim=*/true);
  auto gamma = d * safe_v.gather(-1, first).squeeze(-1);
  if (shape >= 1) return gamma;
  return gamma * unit_interval(words.select(-1, 3)).select(-1, 0).pow(1 / shape);
}

}  // namespace

void use_word_kernel(WordKernel kernel) { word_kernel() = std::move(kernel); }

at::Tensor words_by_loop(const Draw& draw, std::int64_t rows, std::int64_t count) {
  auto result = at::empty({rows, count}, at::kLong);
  auto* const values = result.mutable_data_ptr<std::int64_t>();
  for_words(draw, rows, count,
            [&](std::int64_t index, std::uint32_t word) { values[index] = word; });
  return result;
}

at::Tensor words_by_tensors(const Draw& draw, std::int64_t rows, std::int64_t count,
                            at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const auto blocks = (count + kWordsOfBlock - 1) / kWordsOfBlock;
  const auto samples = (torch::arange(rows, options) + draw.first_sample).unsqueeze(1);
  std::array<at::Tensor, 4> counter{
      torch::arange(blocks, options).unsqueeze(0).expand({rows, blocks}),
      torch::full({rows, blocks}, static_cast<std::int64_t>(draw.purpose), options),
      samples.bitwise_and(kMask).expand({rows, blocks}),
      samples.bitwise_right_shift(32).bitwise_and(kMask).expand({rows, blocks})};
  std::array<std::int64_t, 2> key{low(draw.seed), high(draw.seed)};
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto [high0, low0] = product(kPhiloxMultiplier0, counter[0]);
    const auto [high1, low1] = product(kPhiloxMultiplier1, counter[2]);
    counter = {high1.bitwise_xor(counter[1]).bitwise_xor(key[0]), low1,
               high0.bitwise_xor(counter[3]).bitwise_xor(key[1]), low0};
    key = {(key[0] + kPhiloxWeyl0) & kMask, (key[1] + kPhiloxWeyl1) & kMask};
  }
  return at::stack({counter[0], counter[1], counter[2], counter[3]}, 2)
      .view({rows, blocks * kWordsOfBlock})
      .narrow(1, 0, count);
}

at::Tensor draw_uniform(const Draw& draw, at::IntArrayRef shape, at::Device device) {
  // 24 bits are all that a float32 below 1 has.
  const auto all = words(draw, shape[0], elements_of_row(shape), device);
  return ((all.bitwise_right_shift(8).to(at::kFloat) + 0.5F) * 0x1p-24F).view(shape);
}

at::Tensor draw_normal(const Draw& draw, at::IntArrayRef shape, at::Device device) {
  const auto count = elements_of_row(shape);
  const auto pairs = words(draw, shape[0], 2 * count, device).view({shape[0], count, 2});
  return normal_of(pairs.select(2, 0), pairs.select(2, 1)).to(at::kFloat).view(shape);
}

at::Tensor draw_beta(const Draw& draw, double a, double b, at::IntArrayRef shape,
                     at::Device device) {
  const auto count = elements_of_row(shape);
  const auto all = words(draw, shape[0], 2 * count * kGammaTries * kWordsOfBlock, device)
                       .view({shape[0], 2, count, kGammaTries, kWordsOfBlock});
  const auto x = gamma_of(a, all.select(1, 0));
  const auto y = gamma_of(b, all.select(1, 1));
  return (x / (x + y)).to(at::kFloat).view(shape);
}

at::Tensor draw_keep_mask(const Draw& draw, double share, at::IntArrayRef shape,
                          at::Device device) {
  const auto limit = static_cast<std::int64_t>(std::llround(share * kTwoTo32));
  const auto kept = static_cast<float>(1.0 / share);
  if (!device.is_cpu()) {
    const auto all = words_on_device(draw, shape[0], elements_of_row(shape), device);
    return all.lt(limit).to(at::kFloat).mul_(kept).view(shape);
  }
  auto mask = at::empty(shape, at::kFloat);
  auto* const values = mask.mutable_data_ptr<float>();
  for_words(draw, shape[0], elements_of_row(shape), [&](std::int64_t index, std::uint32_t word) {
    values[index] = word < limit ? kept : 0;
  });
  return mask;
}

}  // namespace tj::trainer
