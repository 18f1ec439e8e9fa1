// Ranks that each have all weights and an optimizer for all of them, whatever makes them the same:
// what those ways share. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "trainer/train/adamw.h"
#include "trainer/train/data_parallel.h"
#include "trainer/train/plan.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

/// Of a plan that is settled.
std::vector<UpdateRule> rules_of(const TrainPlan& plan, const Workload& workload);
bool are_finite(const std::vector<at::Tensor>& tensors);

class Replicas : public DataParallel {
 public:
  Replicas(const TrainPlan& plan, const Workload& workload);
  void adopt(const std::vector<at::Tensor>& trained) override;
  at::Tensor unscale(double scale) override;
  void update(double lr, const at::Tensor& skip) override;
  void move_averages() override;
  bool is_finite_here() const override;
  StateTensors state() const override;
  std::int64_t optimizer_steps() const override { return optimizer_->step_count(); }
  void set_optimizer_steps(std::int64_t steps) override { optimizer_->set_step_count(steps); }
  std::int64_t held_bytes() const override;

 protected:
  std::vector<at::Tensor> gradients() const;
  /// Those that no backward has made are zeros from now on.
  void complete_gradients();
  /// The next backward puts its results there, instead of adding them to zeros.
  void drop_gradients();
  /// Of `loss`, which may lead to no parameter.
  static void accumulate(const at::Tensor& loss, double factor);
  const AdamW& optimizer() const { return *optimizer_; }
  /// Tensors that are held beside what all replicas have.
  virtual std::vector<at::Tensor> held_beside() const { return {}; }

  const TrainPlan& plan_;
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;

 private:
  std::vector<UpdateRule> rules_;
  std::unique_ptr<AdamW> optimizer_;
  std::vector<at::Tensor> averages_;
};

}  // namespace tj::trainer
