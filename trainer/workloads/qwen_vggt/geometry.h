// How a Qwen2.5-VL sees what VGGT knows of the newest frame (JanusVLN, arXiv 2509.22548): patches
// become tokens of the language tower's width and are added to those of the pictures. Includes
// torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/workload/tensor_spec.h"
#include "trainer/workloads/qwen_vggt/image_grid.h"

namespace tj::trainer {

struct GeometryConfig {
  std::int64_t features = 2048;  // of a patch: twice VGGT's width
  std::int64_t hidden = 4096;
  std::int64_t width = 2048;  // of the language tower
  std::int64_t merge_side = 2;
  double weight = 0.2;  // with which the tokens are added
  bool operator==(const GeometryConfig&) const = default;
};

inline constexpr std::size_t kTensorsOfGeometry = 5;
/// The norm, and weight and bias of two matrices; named as JanusVLN names them.
std::vector<TensorSpec> geometry_tensors(const GeometryConfig& config);

/// features [rows x columns, 2 x VGGT's width], patches by rows -> float32 [tokens, width], in the
/// order of the pictures' own tokens. Rows and columns that fill no token are left out.
at::Tensor geometry_tokens(const at::Tensor& features, const VisionGrid& grid,
                           at::TensorList tensors, const GeometryConfig& config);

/// pictures [M, width] of one conversation, each of the newest frame's grid: weight x `geometry` is
/// added to each of them.
at::Tensor with_geometry(const at::Tensor& pictures, const at::Tensor& geometry,
                         const GeometryConfig& config);

}  // namespace tj::trainer
