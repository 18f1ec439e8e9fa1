// Low-rank adapters (Hu et al. 2021: LoRA) as tensors of a model: which matrices have some, and
// what they are called. Torch-free and pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

struct LoraOptions {
  std::int64_t rank = 0;  // 0: no adapters
  std::int64_t alpha = 0;
  std::vector<std::string> targets;  // patterns on the names of matrices
  std::vector<std::string> also;     // and on those of tensors that are trained as a whole
  double scale() const { return static_cast<double>(alpha) / static_cast<double>(rank); }
};

/// A matrix W that the model computes with, W = base + alpha / rank x B A, of a W that is [inputs,
/// outputs] + (B A)^T: A and B are as PEFT holds them. All are indices of tensors.
struct LoraTarget {
  std::size_t weight = 0;
  std::size_t base = 0;        // [outputs, inputs] or [inputs, outputs], as the training has begun
  std::size_t a = 0;           // [rank, inputs]
  std::size_t b = 0;           // [outputs, rank]
  bool is_transposed = false;  // W is [inputs, outputs]
  bool operator==(const LoraTarget&) const = default;
};

struct LoraTensors {
  /// Those of the model, frozen but for what `also` says; then base, A and B of each target, which
  /// are not published: what others read are the merged weights.
  std::vector<TensorSpec> tensors;
  std::vector<LoraTarget> targets;
};

/// Fails with Code::invalid for a pattern that matches none of the trained tensors (matrices, of
/// `targets`), and names near ones.
Result<LoraTensors> with_lora(const LoraOptions& options, std::vector<TensorSpec> tensors);

/// Adapters belong to the first block that uses their matrix: its backward ends last.
std::vector<ModelBlock> with_lora(std::span<const LoraTarget> targets,
                                  std::vector<ModelBlock> blocks);

}  // namespace tj::trainer
