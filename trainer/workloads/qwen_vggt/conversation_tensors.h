// Encoded conversations as the tensors of one batch (ConversationTensor), as long and as wide as
// the largest of them. No torch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "trainer/workloads/qwen_vggt/conversation_encoder.h"

namespace tj::trainer {

/// `numbers`: of each. The weight counts learned tokens.
SampleBatch conversation_batch(std::span<const EncodedConversation> samples,
                               std::span<const std::int64_t> numbers, const PatchRule& rule);

}  // namespace tj::trainer
