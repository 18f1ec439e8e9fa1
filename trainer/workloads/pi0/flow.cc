#include "trainer/workloads/pi0/flow.h"

#include <torch/types.h>

#include <cmath>
#include <functional>
#include <vector>

#include "trainer/workload/draws.h"

namespace tj::trainer {
namespace {

// Purposes of the counter-based random numbers.
constexpr std::uint32_t kNoise = 0;
constexpr std::uint32_t kTime = 1;
constexpr std::uint32_t kNoiseByNumber = 2;
constexpr std::uint32_t kTimeByNumber = 3;
constexpr std::uint32_t kSamplingNoise = 4;

constexpr double kBetaA = 1.5, kBetaB = 1;
constexpr double kTimeScale = 0.999, kTimeMin = 0.001;
constexpr double kPeriodMin = 4e-3, kPeriodMax = 4;

at::Tensor flow_time(const Draw& draw, std::int64_t samples, at::Device device) {
  const auto beta = draw_beta(draw, kBetaA, kBetaB, {samples, 1}, device).squeeze(1);
  return beta * kTimeScale + kTimeMin;
}

/// Of samples whose numbers don't follow one another. `draw`: of one of them, [1, ...] of `shape`.
at::Tensor drawn_by_number(
    const at::Tensor& numbers, at::IntArrayRef shape,
    const std::function<at::Tensor(std::int64_t number, at::IntArrayRef shape)>& draw) {
  auto shape_of_one = shape.vec();
  shape_of_one[0] = 1;
  std::vector<at::Tensor> rows;
  const auto on_host = numbers.cpu();
  for (std::int64_t row = 0; row < on_host.size(0); ++row)
    rows.push_back(draw(on_host[row].item<std::int64_t>(), shape_of_one));
  return at::cat(rows);
}

}  // namespace

FlowDraw flow_draw(std::uint64_t seed, std::int64_t first_sample, at::IntArrayRef shape,
                   at::Device device) {
  const Draw noise{.seed = seed, .purpose = kNoise, .first_sample = first_sample};
  const Draw time{.seed = seed, .purpose = kTime, .first_sample = first_sample};
  return {.noise = draw_normal(noise, shape, device), .time = flow_time(time, shape[0], device)};
}

FlowDraw flow_draw_by_number(std::uint64_t seed, const at::Tensor& numbers, at::IntArrayRef shape,
                             at::Device device) {
  const auto draw_of = [seed](std::uint32_t purpose, std::int64_t number) {
    return Draw{.seed = seed, .purpose = purpose, .first_sample = number};
  };
  const auto noise = [&](std::int64_t number, at::IntArrayRef of_one) {
    return draw_normal(draw_of(kNoiseByNumber, number), of_one, device);
  };
  const auto time = [&](std::int64_t number, at::IntArrayRef) {
    return flow_time(draw_of(kTimeByNumber, number), 1, device);
  };
  return {.noise = drawn_by_number(numbers, shape, noise),
          .time = drawn_by_number(numbers, shape, time)};
}

at::Tensor sampling_noise(std::uint64_t seed, const at::Tensor& numbers, at::IntArrayRef shape,
                          at::Device device) {
  return drawn_by_number(numbers, shape, [&](std::int64_t number, at::IntArrayRef of_one) {
    return draw_normal({.seed = seed, .purpose = kSamplingNoise, .first_sample = number}, of_one,
                       device);
  });
}

at::Tensor noisy_actions(const at::Tensor& actions, const FlowDraw& draw) {
  const auto time = draw.time.view({-1, 1, 1});
  return time * draw.noise + (1 - time) * actions;
}

at::Tensor flow_velocity(const at::Tensor& actions, const FlowDraw& draw) {
  return draw.noise - actions;
}

at::Tensor time_embedding(const at::Tensor& time, std::int64_t width) {
  const auto options = time.options().dtype(at::kDouble);
  const auto share = torch::linspace(0, 1, width / 2, options);
  const auto period = kPeriodMin * at::pow(kPeriodMax / kPeriodMin, share);
  const auto angle = time.to(at::kDouble).unsqueeze(1) * (2 * M_PI / period);
  return at::cat({angle.sin(), angle.cos()}, 1).to(at::kFloat);
}

}  // namespace tj::trainer
