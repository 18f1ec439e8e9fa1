#include "trainer/workloads/qwen_vggt/geometry.h"

#include <torch/types.h>

#include <cmath>

#include "contract/result.h"

namespace tj::trainer {
namespace {

constexpr double kNormEps = 1e-6;

TensorInit normal(std::int64_t in) {
  return {.kind = TensorInit::Kind::normal, .scale = 1 / std::sqrt(static_cast<double>(in))};
}

}  // namespace

std::vector<TensorSpec> geometry_tensors(const GeometryConfig& config) {
  const auto joined = config.features * config.merge_side * config.merge_side;
  return {{.name = "merger.ln_q.weight",
           .shape = {config.features},
           .init = {.kind = TensorInit::Kind::ones}},
          {.name = "merger.mlp.0.weight", .shape = {config.hidden, joined}, .init = normal(joined)},
          {.name = "merger.mlp.0.bias", .shape = {config.hidden}},
          {.name = "merger.mlp.2.weight",
           .shape = {config.width, config.hidden},
           .init = normal(config.hidden)},
          {.name = "merger.mlp.2.bias", .shape = {config.width}}};
}

at::Tensor geometry_tokens(const at::Tensor& features, const VisionGrid& grid,
                           at::TensorList tensors, const GeometryConfig& config) {
  TJ_CHECK(tensors.size() == kTensorsOfGeometry, "the tensors of the coupling");
  const auto side = config.merge_side;
  const auto rows = grid.rows / side, columns = grid.columns / side;
  const auto grouped = features.view({grid.rows, grid.columns, -1})
                           .narrow(0, 0, rows * side)
                           .narrow(1, 0, columns * side)
                           .unflatten(1, {columns, side})
                           .unflatten(0, {rows, side})
                           .transpose(1, 2);
  const auto normed =
      at::rms_norm(grouped.to(at::kFloat), {config.features}, tensors[0].to(at::kFloat), kNormEps);
  const auto joined = normed.reshape({rows * columns, -1});
  const auto hidden = at::gelu(at::linear(joined, tensors[1], tensors[2]));
  return at::linear(hidden, tensors[3], tensors[4]).to(at::kFloat);
}

at::Tensor with_geometry(const at::Tensor& pictures, const at::Tensor& geometry,
                         const GeometryConfig& config) {
  TJ_CHECK(pictures.size(0) % geometry.size(0) == 0, "pictures of the newest frame's grid");
  const auto by_picture = pictures.unflatten(0, {-1, geometry.size(0)});
  return (by_picture + config.weight * geometry).flatten(0, 1);
}

}  // namespace tj::trainer
