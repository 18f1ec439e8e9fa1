// Conversations as a Qwen2.5-VL sees them: rows of tokens, with their pictures behind each other.
// Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "contract/result.h"
#include "trainer/workloads/qwen_vggt/chat.h"
#include "trainer/workloads/qwen_vggt/mrope.h"

namespace tj::trainer {

/// One conversation, in the host's memory.
struct QwenSample {
  ChatTokens tokens;
  std::vector<VisionInput> vision;  // in the order of their pads
  std::vector<float> patches;       // write_patches() of each, behind each other
};

/// Of B samples, T tokens of the longest.
struct QwenBatch {
  at::Tensor tokens;     // int64 [B, T]; 0 behind a sample's end
  at::Tensor positions;  // int64 [3, B, T]; the same
  /// float32 [patches of all pictures, values of a patch]; undefined: there are no pictures.
  at::Tensor patches;
  std::vector<VisionGrid> grids;
  at::Tensor pads;        // int64 [M]: which of the B x T tokens each token of a picture becomes
  at::Tensor judged;      // int64 [N]: the tokens whose logits count, of the B x T
  at::Tensor target_ids;  // int64 [N]: what they should say
};

/// On `device`. Fails as mrope_positions(), and names the sample.
Result<QwenBatch> qwen_batch(std::span<const QwenSample> samples, const MropeRule& rule,
                             at::Device device);

}  // namespace tj::trainer
