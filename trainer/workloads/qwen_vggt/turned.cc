#include "trainer/workloads/qwen_vggt/turned.h"

#include <torch/types.h>

#include <vector>

namespace tj::trainer {
namespace {

/// float32 [count]: base to the power of -i / count.
at::Tensor frequencies(std::int64_t count, double base, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const auto exponent = torch::arange(0, 2 * count, 2, options) / static_cast<double>(2 * count);
  return at::pow(base, exponent).reciprocal();
}

Turns turns_of(const at::Tensor& angle) { return {.cosine = angle.cos(), .sine = angle.sin()}; }

}  // namespace

Turns mrope_turns(const at::Tensor& positions, std::span<const std::int64_t, 3> sections,
                  double base) {
  const auto count = sections[0] + sections[1] + sections[2];
  const auto frequency = frequencies(count, base, positions.device());
  std::vector<at::Tensor> parts;
  std::int64_t first = 0;
  for (std::size_t axis = 0; axis < sections.size(); ++axis) {
    const auto along = positions.select(0, static_cast<std::int64_t>(axis)).to(at::kFloat);
    parts.push_back(along.unsqueeze(-1) * frequency.narrow(0, first, sections[axis]));
    first += sections[axis];
  }
  return turns_of(at::cat(parts, -1).unsqueeze(1));
}

Turns plane_turns(const at::Tensor& places, std::int64_t head_width, double base) {
  const auto frequency = frequencies(head_width / 4, base, places.device());
  return turns_of((places.to(at::kFloat).unsqueeze(-1) * frequency).flatten(-2));
}

at::Tensor turned(const at::Tensor& x, const Turns& turns) {
  const auto halves = x.to(at::kFloat).chunk(2, -1);
  const auto first = halves[0] * turns.cosine - halves[1] * turns.sine;
  const auto second = halves[1] * turns.cosine + halves[0] * turns.sine;
  return at::cat({first, second}, -1).to(x.scalar_type());
}

}  // namespace tj::trainer
