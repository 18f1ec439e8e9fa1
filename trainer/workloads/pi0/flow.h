// Flow matching (Lipman et al. 2022, arXiv 2210.02747) as pi0 has it: from noise at time 1 to
// actions at time 0. What is drawn for a sample is a function of (seed, sample) alone, whichever
// rank draws it. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tj::trainer {

/// What a pass draws for B samples.
struct FlowDraw {
  at::Tensor noise;  // float32 [B, horizon, width], of mean 0 and variance 1
  at::Tensor time;   // float32 [B], in [0.001, 1]: 0.001 + 0.999 Beta(1.5, 1)
};

/// Of the samples with the numbers from `first_sample` on. `shape`: of the noise.
FlowDraw flow_draw(std::uint64_t seed, std::int64_t first_sample, at::IntArrayRef shape,
                   at::Device device);
/// Of samples by their numbers, int64 [B]; others than flow_draw() gives the same numbers.
FlowDraw flow_draw_by_number(std::uint64_t seed, const at::Tensor& numbers, at::IntArrayRef shape,
                             at::Device device);
/// From which an evaluation samples the actions of samples, by their numbers, too: float32, of mean
/// 0 and variance 1. Other than that of their losses.
at::Tensor sampling_noise(std::uint64_t seed, const at::Tensor& numbers, at::IntArrayRef shape,
                          at::Device device);

/// Between noise and actions: time x noise + (1 - time) x actions.
at::Tensor noisy_actions(const at::Tensor& actions, const FlowDraw& draw);
/// What the model learns: the derivative of that by time, noise - actions.
at::Tensor flow_velocity(const at::Tensor& actions, const FlowDraw& draw);

/// float32 [B, width]: sines, then cosines of 2 pi time / period, of periods that grow
/// geometrically from 0.004 to 4 (openpi's create_sinusoidal_pos_embedding). Computed in float64.
at::Tensor time_embedding(const at::Tensor& time, std::int64_t width);

}  // namespace tj::trainer
