// Gradients of models, and sums about them in words, for the tests of the planner.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "trainer/predict/forecast.h"

namespace tj::trainer {

inline constexpr double kGigabit = 117e6;  // bytes per second, as they arrive

inline std::vector<Gradient> of_elements(std::int64_t elements) { return {{.shape = {elements}}}; }

/// As the workload lists them.
inline std::vector<PlannedTensor> gpt2_tiny_tensors() {
  std::vector<PlannedTensor> tensors{{{50257, 512}}, {{512, 512}}};
  for (int layer = 0; layer < 8; ++layer) {
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{512},
                                                                    {512},
                                                                    {512, 1536},
                                                                    {1536},
                                                                    {512, 512},
                                                                    {512},
                                                                    {512},
                                                                    {512},
                                                                    {512, 2048},
                                                                    {2048},
                                                                    {2048, 512},
                                                                    {512}})
      tensors.push_back({shape});
  }
  tensors.push_back({{512}});
  tensors.push_back({{512}});
  return tensors;
}

/// Its head is tied to the embedding of tokens.
inline std::vector<PlannedBlock> gpt2_tiny_blocks() {
  std::vector<PlannedBlock> blocks{{0, 1}};
  for (std::size_t layer = 0; layer < 8; ++layer) {
    blocks.emplace_back();
    for (std::size_t tensor = 0; tensor < 12; ++tensor)
      blocks.back().push_back(2 + 12 * layer + tensor);
  }
  blocks.push_back({98, 99, 0});
  return blocks;
}

inline std::vector<Gradient> gpt2_tiny() {
  return gradients_by_blocks(gpt2_tiny_tensors(), gpt2_tiny_blocks());
}

/// "201 MB, 1.72 s, 63 %": bytes, seconds on the wire of two nodes, and the share of a step of one
/// second's computing in which nothing is hidden.
inline std::string sum_text(const std::vector<Gradient>& gradients, Codec codec) {
  const StepInputs inputs{.ranks = 2,
                          .compute = {.forward_s = 1.0 / 3, .backward_s = 2.0 / 3},
                          .link = {.bytes_per_second = kGigabit},
                          .gradients = gradients,
                          .reduction = {.codec = codec, .overlaps = false}};
  const auto step = predict_step(inputs);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %.2f s, %.0f %%", bytes_text(step.sent_bytes).c_str(),
                step.wire_s, 100 * step.exposed_share());
  return text;
}

}  // namespace tj::trainer
