// What a pi0 sees and does, as tensors: the one place that says in which order a data source lays
// them down, and what they become on the device. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/workload/made_up_samples.h"
#include "trainer/workload/model.h"
#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

/// Of B samples, in the order of Pi0Config::cameras.
struct Pi0Observation {
  at::Tensor images;      // float32 [B, cameras, 3, side, side], in [-1, 1]; -1 where there is none
  at::Tensor image_mask;  // bool [B, cameras]: false where a sample has no such image
  at::Tensor tokens;      // int64 [B, prompt_tokens], below the vocabulary; anything behind its end
  at::Tensor token_mask;  // bool [B, prompt_tokens]: false behind the prompt's end
  at::Tensor state;       // float32 [B, state_width], normalised, filled up with zeros
};

struct Pi0Batch {
  Pi0Observation observation;
  at::Tensor actions;  // float32 [B, horizon, action_width], normalised, filled up with zeros
  /// int64 [B]: which of the data's samples these are. By them noise and times of an evaluation are
  /// drawn; those of a training step by the global numbers that the engine gives.
  at::Tensor numbers;
  /// bool [B, horizon]: beyond the end of the episode, where `actions` has its last one again.
  at::Tensor action_pad = {};
};

/// Places in SampleBatch::tensors. What a pass has is of these types and shapes:
enum class Pi0Input : std::size_t {
  images,      // uint8 [B, cameras, 3, side, side], 0 to 255 for -1 to 1; or float32 in [-1, 1]
  image_mask,  // uint8 [B, cameras], 0 or not
  tokens,      // int32 [B, prompt_tokens]
  token_mask,  // uint8 [B, prompt_tokens], 0 or not
  state,       // float32 [B, state_width]
  actions,     // float32 [B, horizon, action_width]
  numbers,     // int32 [B]
  action_pad,  // uint8 [B, horizon], 0 or not
};
inline constexpr std::size_t kPi0Inputs = 8;

/// Of what a source has read, on the device on which it is.
Pi0Batch pi0_batch(const Batch& tensors);

/// One sample of such a source, with images as bytes.
std::vector<MadeUpTensor> pi0_made_up(const Pi0Config& config);

/// Its bytes in the host's memory.
std::int64_t pi0_bytes_of_sample(const Pi0Config& config);

}  // namespace tj::trainer
