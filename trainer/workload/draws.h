// What a pass draws at random: functions of (seed, purpose, sample) alone, made on the device. The
// number of ranks, the micro-batch and a resume change none of them. Words are those of
// Philox4x32-10 (values/counter_random.h), the same bits on every device. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace tj::trainer {

struct Draw {
  std::uint64_t seed = 0;
  std::uint32_t purpose = 0;      // a number of its own for each thing that is drawn
  std::int64_t first_sample = 0;  // global number of the first row's sample
};

// All float32 of `shape`, [samples, ...], with row i of sample first_sample + i.

/// In (0, 1).
at::Tensor draw_uniform(const Draw& draw, at::IntArrayRef shape, at::Device device);
/// Of mean 0 and variance 1 (Box and Muller 1958).
at::Tensor draw_normal(const Draw& draw, at::IntArrayRef shape, at::Device device);
/// Beta(a, b) from two gamma variates (Marsaglia and Tsang 2000: A simple method for generating
/// gamma variables). Needs a > 0 and b > 0.
at::Tensor draw_beta(const Draw& draw, double a, double b, at::IntArrayRef shape,
                     at::Device device);
/// 1 / share with the probability `share`, else 0: a dropout mask that keeps the expected sum.
/// Needs 0 < share <= 1.
at::Tensor draw_keep_mask(const Draw& draw, double share, at::IntArrayRef shape, at::Device device);

/// Makes on a GPU the words [rows, count] of elements [1, count] and samples [rows, 1] by one
/// kernel; undefined: it can't, and tensor operations do.
using WordKernel = std::function<at::Tensor(const Draw& draw, const at::Tensor& elements,
                                            const at::Tensor& samples)>;
/// Call before anything is drawn.
void use_word_kernel(WordKernel kernel);

// The words below all of them: int64 [rows, count], each below 2^32. Once by a loop on the host and
// once by tensor operations on any device; the same numbers.
at::Tensor words_by_loop(const Draw& draw, std::int64_t rows, std::int64_t count);
at::Tensor words_by_tensors(const Draw& draw, std::int64_t rows, std::int64_t count,
                            at::Device device);

}  // namespace tj::trainer
