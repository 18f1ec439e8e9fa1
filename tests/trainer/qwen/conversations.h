// Made-up conversations of a nano Qwen2.5-VL, for tests. Includes torch.
#pragma once
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>
#include <vector>

#include "trainer/workloads/qwen_vggt/qwen.h"

namespace tj::trainer {

inline const VisionGrid kSquare{.frames = 1, .rows = 4, .columns = 4};
/// 3 x 6 tokens: windows of 3 x 4 and 3 x 2.
inline const VisionGrid kWide{.frames = 1, .rows = 6, .columns = 12};

/// Random words and pixels: pictures first, each in its place, then `words` of which the last half
/// is learned.
inline QwenSample made_up(const QwenConfig& config, const std::vector<VisionInput>& vision,
                          std::int64_t words) {
  QwenSample sample;
  sample.vision = vision;
  const auto add = [&](std::int32_t id, bool is_learned) {
    sample.tokens.ids.push_back(id);
    sample.tokens.labels.push_back(is_learned ? id : kNoLabel);
  };
  for (const auto& input : vision) {
    add(config.ids.begin, false);
    const auto pads = input.grid.patches() / (config.vision.merge_side * config.vision.merge_side);
    for (std::int64_t pad = 0; pad < pads; ++pad)
      add(input.is_video ? config.ids.video : config.ids.image, false);
    add(config.ids.end, false);
    const auto values = torch::randn({input.grid.patches() * config.vision.values_of_patch()});
    sample.patches.insert(sample.patches.end(), values.data_ptr<float>(),
                          values.data_ptr<float>() + values.numel());
  }
  const auto ids = torch::randint(config.ids.begin, {words}, at::kInt);
  for (std::int64_t word = 0; word < words; ++word)
    add(ids[word].item<std::int32_t>(), 2 * word >= words);
  return sample;
}

inline QwenBatch batch_of(const QwenConfig& config, const std::vector<QwenSample>& samples) {
  auto batch = qwen_batch(samples, config.mrope(), at::kCPU);
  if (!batch) {
    ADD_FAILURE() << describe(batch.error());
    return {};
  }
  return std::move(*batch);
}

/// No tensor is zero or one, as most begin: these hide mistakes.
inline std::vector<at::Tensor> random_weights(const std::vector<TensorSpec>& specs) {
  torch::manual_seed(2);
  std::vector<at::Tensor> weights;
  for (const auto& spec : specs) {
    const auto inputs = element_count(spec) / spec.shape.front();
    const double spread = spec.shape.size() > 1 ? 1 / std::sqrt(static_cast<double>(inputs)) : 0.1;
    const double middle = spec.name.find("norm") != std::string::npos ? 1 : 0;
    weights.push_back((torch::randn(spec.shape) * spread + middle)
                          .requires_grad_(spec.kind == TensorKind::trained));
  }
  return weights;
}

inline Qwen random_qwen(const QwenConfig& config, const ModelOptions& options = {.seed = 3}) {
  return {random_weights(qwen_tensors(config).specs), config, options};
}

}  // namespace tj::trainer
