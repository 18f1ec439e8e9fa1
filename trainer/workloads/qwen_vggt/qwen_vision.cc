#include "trainer/workloads/qwen_vggt/qwen_vision.h"

#include <torch/types.h>

#include <map>

#include "contract/result.h"
#include "trainer/workload/attention.h"

namespace tj::trainer {
namespace {

constexpr double kNormEps = 1e-6;
constexpr double kRotaryBase = 10'000;

at::Tensor on_device(const std::vector<std::int64_t>& numbers, at::Device device) {
  return torch::tensor(numbers, at::kLong).to(device);
}

at::Tensor normed(const at::Tensor& x, const at::Tensor& weight) {
  return at::rms_norm(x, {x.size(-1)}, weight.to(at::kFloat), kNormEps);
}

at::Tensor linear(const at::Tensor& x, at::TensorList tensors) {
  return at::linear(x, tensors[0], tensors[1]);
}

/// Groups of patches of x [P, ...] in `order`.
at::Tensor grouped(const at::Tensor& x, const at::Tensor& order) {
  return x.unflatten(0, {order.size(0), -1}).index_select(0, order).flatten(0, 1);
}

/// q, k, v [P, heads, head] -> the same. Stretches of one length attend in one call.
at::Tensor attended(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const AttentionPlan& sees) {
  std::vector<at::Tensor> parts;
  for (const auto& part : sees.stretches) {
    const auto by_stretch = [&](const at::Tensor& x) {
      return x.index_select(0, part.rows).unflatten(0, {-1, part.length}).transpose(1, 2);
    };
    const auto mixed = masked_attention(by_stretch(q), by_stretch(k), by_stretch(v));
    parts.push_back(mixed.transpose(1, 2).flatten(0, 1));
  }
  return at::cat(parts).index_select(0, sees.back);
}

}  // namespace

AttentionPlan attention_plan(std::span<const std::int64_t> bounds, at::Device device) {
  std::map<std::int64_t, std::vector<std::int64_t>> rows_by_length;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    auto& rows = rows_by_length[bounds[i + 1] - bounds[i]];
    for (auto row = bounds[i]; row < bounds[i + 1]; ++row) rows.push_back(row);
  }
  AttentionPlan plan;
  std::vector<std::int64_t> all;
  for (const auto& [length, rows] : rows_by_length) {
    plan.stretches.push_back({.length = length, .rows = on_device(rows, device)});
    all.insert(all.end(), rows.begin(), rows.end());
  }
  plan.back = on_device(inverse_of(all), device);
  return plan;
}

VisionPlan vision_plan(std::span<const VisionGrid> grids, const QwenVision& vision,
                       at::Device device) {
  const auto windows = vision_windows(grids, vision.windows());
  const auto places = vision_places(grids, vision.merge_side);
  std::vector<std::int64_t> flat;
  for (const auto& place : places) {
    flat.push_back(place.row);
    flat.push_back(place.column);
  }
  VisionPlan plan{.order = on_device(windows.order, device),
                  .back = on_device(inverse_of(windows.order), device),
                  .windows = attention_plan(windows.window_bounds, device),
                  .frames = attention_plan(windows.frame_bounds, device),
                  .turns = {}};
  const auto in_order = grouped(on_device(flat, device).view({-1, 2}), plan.order);
  plan.turns = plane_turns(in_order.unsqueeze(1), vision.head_width(), kRotaryBase);
  return plan;
}

at::Tensor vision_patches(const at::Tensor& patches, const at::Tensor& weight,
                          const VisionPlan& plan) {
  return grouped(at::linear(patches, weight.flatten(1)).to(at::kFloat), plan.order);
}

at::Tensor vision_layer(const at::Tensor& x_PC, at::TensorList tensors, const QwenVision& vision,
                        const AttentionPlan& sees, const Turns& turns) {
  TJ_CHECK(tensors.size() == kTensorsOfQwenVisionLayer, "the tensors of one layer");
  const auto qkv = linear(normed(x_PC, tensors[0]), tensors.slice(1, 2))
                       .view({x_PC.size(0), 3, vision.heads, vision.head_width()})
                       .unbind(1);
  const auto mixed = attended(turned(qkv[0], turns), turned(qkv[1], turns), qkv[2], sees);
  const auto attended_PC = x_PC + linear(mixed.flatten(1), tensors.slice(3, 2)).to(at::kFloat);
  const auto inside = normed(attended_PC, tensors[5]);
  const auto hidden =
      at::silu(linear(inside, tensors.slice(6, 2))) * linear(inside, tensors.slice(8, 2));
  return attended_PC + linear(hidden, tensors.slice(10, 2)).to(at::kFloat);
}

at::Tensor vision_merged(const at::Tensor& x_PC, at::TensorList tensors, const QwenVision& vision,
                         const VisionPlan& plan) {
  TJ_CHECK(tensors.size() == kTensorsOfQwenMerger, "the tensors of the merger");
  const auto joined = normed(x_PC, tensors[0]).view({-1, vision.merged_width()});
  const auto merged = linear(at::gelu(linear(joined, tensors.slice(1, 2))), tensors.slice(3, 2));
  return merged.to(at::kFloat).index_select(0, plan.back);
}

}  // namespace tj::trainer
