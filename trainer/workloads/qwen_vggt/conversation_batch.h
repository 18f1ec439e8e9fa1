// What a source of conversations has read, as the model sees it: padding behind the longest row is
// gone, pixels are what the tower takes, and which tokens are judged is known. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workloads/qwen_vggt/qwen_batch.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"

namespace tj::trainer {

/// The still pictures of one conversation, for VGGT.
struct SceneFrames {
  at::Tensor frames;                 // uint8 [S, 3, height, width], the newest last
  std::vector<std::int64_t> hashes;  // of each; equal frames have equal ones
  VisionGrid grid;                   // of each
};

/// Of one sample: where its pictures' tokens begin and end among all of the batch, and which of
/// them VGGT may add to.
struct SamplePictures {
  struct Picture {
    std::int64_t first_token = 0;
    std::int64_t tokens = 0;
    bool is_like_newest = false;  // a still one, of the grid of the newest
  };
  std::vector<Picture> pictures;
  std::optional<SceneFrames> scene;
};

struct ConversationBatch {
  QwenBatch qwen;
  at::Tensor answers;             // int64 [N]: which answer each target is of, from 0
  std::int64_t answer_count = 0;  // turns of the assistant that have a learned token
  std::vector<SamplePictures> samples;
};

/// Of tensors in the order of ConversationTensor, on the device on which they are. Rows are cut to
/// the longest of them, so that a part of a batch computes what it would alone.
ConversationBatch conversation_batch(const Batch& tensors, const QwenConfig& config);

}  // namespace tj::trainer
