// A Qwen2.5-VL that learns conversations, and sees through a frozen VGGT what the newest picture
// shows of its scene (JanusVLN, arXiv 2509.22548). Includes torch.
#pragma once
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workloads/qwen_vggt/conversation_batch.h"
#include "trainer/workloads/qwen_vggt/qwen.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_config.h"
#include "trainer/workloads/qwen_vggt/scene_features.h"

namespace tj::trainer {

/// Sums of a pass beside that of the loss.
enum QwenVggtSum : std::size_t {
  kRightTokens,   // learned tokens that the model would have said, given those before
  kRightAnswers,  // answers of which it would have said every token; 0 in training
  kAnswers,       // how many there are; 0 in training
  kQwenVggtSums
};

class QwenVggt final : public Model {
 public:
  /// Initial weights are a function of the seed. `features` of a model with a coupling.
  QwenVggt(const QwenVggtConfig& config, const ModelOptions& options, const ModelKeeper& keeper,
           std::unique_ptr<SceneFeatures> features);
  /// Of weights that are there, in the order of qwen_vggt_tensors().
  QwenVggt(std::vector<at::Tensor> weights, const QwenVggtConfig& config,
           const ModelOptions& options, std::unique_ptr<SceneFeatures> features);
  ~QwenVggt() override;
  QwenVggt(const QwenVggt&) = delete;
  QwenVggt& operator=(const QwenVggt&) = delete;

  /// Of a batch in the order of ConversationTensor.
  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override;
  /// Has VGGT look. Where that is shared out it waits for its pass: other ranks' parts would hold
  /// up what the pass beside it needs of them.
  void ahead(const Batch& next) const override;
  const std::vector<at::Tensor>& tensors() const override { return parameters_; }

  /// The tokens of all pictures, with what VGGT knows; undefined where there are none.
  at::Tensor pictures(const ConversationBatch& batch) const;
  const Qwen& qwen() const { return *qwen_; }

 private:
  struct Hooks;  // of the blocks that are Qwen's
  /// By ahead().
  struct Begun {
    at::Tensor tokens;  // by which its batch is known
    ConversationBatch made;
    SideWork::Begun features;
  };

  void make_qwen(BlockHooks* hooks);
  std::optional<Begun> take_begun(const Batch& batch) const;
  at::Tensor pictures(const ConversationBatch& batch,
                      const std::vector<at::Tensor>& features) const;
  at::Tensor with_scenes(const ConversationBatch& batch, const at::Tensor& pictures,
                         const std::vector<at::Tensor>& features) const;

  QwenVggtConfig config_;
  ModelOptions options_;
  QwenVggtTensors layout_;
  std::vector<at::Tensor> parameters_;
  BlockHooks* hooks_ = nullptr;  // null: there are none
  std::unique_ptr<Hooks> qwen_hooks_;
  std::unique_ptr<Qwen> qwen_;
  std::unique_ptr<SceneFeatures> features_;  // null: there is no coupling
  mutable std::deque<Begun> begun_;          // of this pass, and of the next
};

}  // namespace tj::trainer
