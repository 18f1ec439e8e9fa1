// Weights that are merged of a base and low-rank adapters (Hu et al. 2021: LoRA, section 4.1),
// W = base + alpha / rank x B A, under a model that knows nothing of them: it computes with W, and
// the gradient of W goes on to A and B. W is a tensor of its own, made anew after each update, so
// that checkpoints hold the merged weights beside the rest. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "trainer/checkpoint/training_state.h"
#include "trainer/train/plan.h"
#include "trainer/workload/block_hooks.h"
#include "trainer/workload/lora_tensors.h"
#include "trainer/workload/model_options.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

class Lora final : public BlockHooks {
 public:
  /// `keeper` has whatever keeps the tensors of the plan, adapters too.
  Lora(const TrainPlan& plan, const Workload& workload, ModelKeeper keeper);
  ~Lora() override;

  /// For the model that is to be made.
  ModelKeeper keeper();
  /// Its tensors and those of the adapters, in the order of tensors_of(). Once.
  std::vector<at::Tensor> with_adapters(std::vector<at::Tensor> of_model,
                                        const ModelOptions& options);

  /// Once the state is what training begins with. `is_afresh`: the weights are, and no base.
  void begin(bool is_afresh);
  void begin_pass();
  void before(std::size_t block) override;
  void after(std::size_t block, const at::Tensor& output) override;
  void hold() override;
  /// After an update of the adapters, which are whole on each rank then.
  void merge();
  /// After an update that was not skipped: averages are of the merged weights.
  void move_averages();
  /// Averages as a checkpoint holds them, with the names of the weights.
  void append_averages(std::vector<NamedTensor>& list) const;

 private:
  struct Merged {
    LoraTarget at;
    std::string name;
    at::Tensor weight, base, a, b;  // weight and base float32
    at::Tensor average;             // undefined: none is kept
    bool is_attached = false;       // in this pass: gradients of the weight reach the adapters
  };

  void attach(Merged& merged);

  double scale_;
  double ema_decay_;
  ModelKeeper keeper_;
  std::vector<TensorSpec> specs_;
  std::size_t model_tensors_;
  std::vector<Merged> merged_;
  std::vector<std::vector<std::size_t>> of_blocks_;  // of merged_, by block
};

/// Null without --lora.
std::unique_ptr<Lora> make_lora(const TrainPlan& plan, const Workload& workload,
                                ModelKeeper keeper);

}  // namespace tj::trainer
