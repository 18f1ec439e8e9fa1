// What a pass of a Qwen2.5-VL with a VGGT takes in memory, by what each of its operations leaves
// for its backward: derived from qwen_layer.cc, qwen_vision.cc and vggt_layer.cc, and held to
// torch's allocator in tests. Pure.
#pragma once
#include <cstdint>

#include "trainer/workload/pass_memory.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_config.h"

namespace tj::trainer {

/// What is kept of a VGGT for longer than a pass.
struct VggtRoom {
  std::int64_t cache_bytes_max = 0;
  std::int64_t frames_max = 0;  // that all data has; 0: not known
  bool is_shared_out = false;   // a rank keeps a part of each layer
};

/// Of passes over conversations of such a size, with all tensors trained.
PassMemory qwen_vggt_memory(const QwenVggtConfig& config, const ConversationSize& size,
                            const PassRule& rule, const VggtRoom& room);

}  // namespace tj::trainer
