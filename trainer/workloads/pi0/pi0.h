// The robot policies pi0 and pi05 as openpi's PyTorch computes them: images and prompt in one
// Gemma, state and noisy actions in another, one attention over both. Includes torch.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workloads/pi0/flow.h"
#include "trainer/workloads/pi0/gemma_layer.h"
#include "trainer/workloads/pi0/pi0_batch.h"
#include "trainer/workloads/pi0/pi0_config.h"
#include "trainer/workloads/pi0/visibility.h"

namespace tj::trainer {

inline constexpr int kFlowSteps = 10;  // from noise to actions, as openpi samples
/// Of a pass; of an evaluation the sum of the absolute errors of sampled actions, and of how many
/// values it is: those that count, up to the end of the episode.
inline constexpr std::size_t kPi0MetricSums = 2;

class Pi0 final : public Model {
 public:
  /// Initial weights are a function of the seed.
  Pi0(const Pi0Config& config, const ModelOptions& options, const ModelKeeper& keeper = {});
  /// Of weights that are there, in the order of pi0_tensors(), for what comes after training.
  Pi0(std::vector<at::Tensor> weights, const Pi0Config& config, const ModelOptions& options);
  ~Pi0() override;
  Pi0(const Pi0&) = delete;
  Pi0& operator=(const Pi0&) = delete;

  /// Of a batch in the order of Pi0Input. An evaluation draws noise and time, too: by the samples'
  /// own numbers, so that each evaluation draws the same. It also samples actions.
  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override;
  /// The sum of the squared errors of the velocity, over the actions that count.
  at::Tensor loss(const Pi0Batch& batch, const FlowDraw& draw) const;

  /// Tokens of images and prompt, float32 [B, prefix_tokens, width of the prefix].
  at::Tensor prefix(const Pi0Observation& observation) const;
  /// Tokens of state and noisy actions, float32 [B, suffix_tokens, width of the expert].
  struct Suffix {
    at::Tensor tokens;
    at::Tensor condition;  // of adaRMS, [B, width of the expert]; of pi0 undefined
  };
  Suffix suffix(const at::Tensor& state, const at::Tensor& noisy, const at::Tensor& time) const;

  /// From `noise` [B, horizon, action_width], at time 1, by `steps` Euler steps to actions of that
  /// shape, normalised as those of the training. Images and prompt are looked at once. Without
  /// gradients; where weights come and go (ZeRO), only in a pass that holds all blocks.
  at::Tensor sampled_actions(const Pi0Observation& observation, const at::Tensor& noise,
                             int steps = kFlowSteps) const;

  const std::vector<at::Tensor>& tensors() const override { return parameters_; }

 private:
  struct Places {  // of a pass: what every layer needs
    at::Tensor visible;
    Rotation rotation;
  };
  struct Seen {  // keys and values of the prefix, [B, 1, prefix_tokens, width of a head]
    at::Tensor k, v;
  };
  Places places(const Pi0Observation& observation) const;
  at::TensorList part(std::size_t first, std::size_t count) const;
  at::TensorList block(std::size_t index) const;
  GemmaLayer prefix_layer(std::size_t layer) const;
  GemmaLayer expert_layer(std::size_t layer, const at::Tensor& condition) const;
  std::vector<at::Tensor> computed(
      std::size_t block_index, const std::vector<at::Tensor>& inputs,
      const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& compute) const;
  at::Tensor image_tokens(const at::Tensor& images) const;
  std::vector<at::Tensor> joint_layer(std::size_t layer, const std::vector<at::Tensor>& streams,
                                      const Places& places) const;
  at::Tensor velocity(const at::Tensor& expert_stream, const at::Tensor& condition) const;
  std::vector<at::Tensor> action_errors(const Pi0Batch& batch) const;
  std::vector<Seen> seen(const Pi0Observation& observation, const Places& places) const;
  at::Tensor next_velocity(const std::vector<Seen>& seen, const Suffix& suffix,
                           const Places& places) const;

  Pi0Config config_;
  ModelOptions options_;
  BlockHooks* hooks_;  // null: there are none
  Pi0Tensors layout_;
  std::vector<at::Tensor> parameters_;
};

}  // namespace tj::trainer
