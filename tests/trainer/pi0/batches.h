// Batches of a pi0 as a pass has them, for tests. Includes torch.
#pragma once
#include <gtest/gtest.h>
#include <torch/types.h>

#include <numeric>
#include <vector>

#include "tests/trainer/pi0/colour_samples.h"
#include "trainer/workloads/pi0/pi0_batch.h"

namespace tj::trainer {

inline at::Tensor tensor_of(const HostTensor& tensor) {
  const auto type = tensor.type == HostTensor::Type::uint8   ? at::kByte
                    : tensor.type == HostTensor::Type::int32 ? at::kInt
                                                             : at::kFloat;
  return torch::from_blob(const_cast<std::byte*>(tensor.bytes.data()), tensor.shape, type).clone();
}

/// Samples `first` and the `count` - 1 behind it.
inline Batch read_batch(const SampleSource& source, std::int64_t first, std::int64_t count) {
  std::vector<Sample> samples;
  for (std::int64_t index = first; index < first + count; ++index)
    samples.push_back({.index = index});
  const auto read = source.read(samples);
  if (!read) ADD_FAILURE() << describe(read.error());
  Batch batch;
  for (const auto& tensor : read->tensors) batch.push_back(tensor_of(tensor));
  return batch;
}

/// Everything random; the second camera of the first sample is masked, prompts are of 5, 6, ...
/// tokens.
inline Pi0Batch random_batch(const Pi0Config& config, std::int64_t samples) {
  torch::manual_seed(4);
  const auto cameras = static_cast<std::int64_t>(config.cameras.size());
  const auto side = config.vision.image_side;
  auto image_mask = torch::ones({samples, cameras}, at::kBool);
  image_mask[0][cameras - 1] = false;
  auto token_mask = torch::zeros({samples, config.prompt_tokens}, at::kBool);
  for (std::int64_t row = 0; row < samples; ++row)
    token_mask[row].narrow(0, 0, std::min<std::int64_t>(5 + row, config.prompt_tokens)) = true;
  return {
      .observation = {.images =
                          torch::rand({samples, cameras, kPi0ImageChannels, side, side}) * 2 - 1,
                      .image_mask = image_mask,
                      .tokens = torch::randint(config.vocabulary, {samples, config.prompt_tokens}),
                      .token_mask = token_mask,
                      .state = torch::randn({samples, config.state_width})},
      .actions = torch::randn({samples, config.horizon, config.action_width}),
      .numbers = torch::arange(samples),
      .action_pad = torch::zeros({samples, config.horizon}, at::kBool)};
}

/// As a source would have read it, with images as floats.
inline Batch as_read(const Pi0Batch& batch) {
  const auto& seen = batch.observation;
  return {seen.images,
          seen.image_mask.to(at::kByte),
          seen.tokens.to(at::kInt),
          seen.token_mask.to(at::kByte),
          seen.state,
          batch.actions,
          batch.numbers.to(at::kInt),
          batch.action_pad.to(at::kByte)};
}

/// Samples `first` and the `count` - 1 behind it.
inline Batch narrowed(const Batch& batch, std::int64_t first, std::int64_t count) {
  Batch part;
  for (const auto& tensor : batch) part.push_back(tensor.narrow(0, first, count));
  return part;
}

}  // namespace tj::trainer
