#include "trainer/workloads/pi0/flow.h"

#include <torch/types.h>

#include <cmath>
#include <vector>

#include "trainer/workload/draws.h"

namespace tj::trainer {
namespace {

// Purposes of the counter-based random numbers.
constexpr std::uint32_t kNoise = 0;
constexpr std::uint32_t kTime = 1;
constexpr std::uint32_t kNoiseByNumber = 2;
constexpr std::uint32_t kTimeByNumber = 3;

constexpr double kBetaA = 1.5, kBetaB = 1;
constexpr double kTimeScale = 0.999, kTimeMin = 0.001;
constexpr double kPeriodMin = 4e-3, kPeriodMax = 4;

FlowDraw drawn(const Draw& noise, const Draw& time, at::IntArrayRef shape, at::Device device) {
  const auto beta = draw_beta(time, kBetaA, kBetaB, {shape[0], 1}, device).squeeze(1);
  return {.noise = draw_normal(noise, shape, device), .time = beta * kTimeScale + kTimeMin};
}

}  // namespace

FlowDraw flow_draw(std::uint64_t seed, std::int64_t first_sample, at::IntArrayRef shape,
                   at::Device device) {
  return drawn({.seed = seed, .purpose = kNoise, .first_sample = first_sample},
               {.seed = seed, .purpose = kTime, .first_sample = first_sample}, shape, device);
}

FlowDraw flow_draw_by_number(std::uint64_t seed, const at::Tensor& numbers, at::IntArrayRef shape,
                             at::Device device) {
  auto shape_of_one = shape.vec();
  shape_of_one[0] = 1;
  std::vector<at::Tensor> noises, times;
  const auto on_host = numbers.cpu();
  for (std::int64_t row = 0; row < on_host.size(0); ++row) {
    const auto number = on_host[row].item<std::int64_t>();
    auto one = drawn({.seed = seed, .purpose = kNoiseByNumber, .first_sample = number},
                     {.seed = seed, .purpose = kTimeByNumber, .first_sample = number}, shape_of_one,
                     device);
    noises.push_back(std::move(one.noise));
    times.push_back(std::move(one.time));
  }
  return {.noise = at::cat(noises), .time = at::cat(times)};
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
