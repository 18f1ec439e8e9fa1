#include "trainer/train/lora.h"

#include <torch/csrc/autograd/function.h>
#include <torch/types.h>

#include <algorithm>
#include <utility>

#include "trainer/train/gradients.h"
#include "trainer/train/tuning.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

/// The adapters' initial values are others than the model's of the same seed.
constexpr std::uint64_t kAdapterSeed = 0x9e3779b97f4a7c15;

/// Of W = base + scale x B A: dB = scale x dW A^T, dA = scale x B^T dW; of a transposed W with its
/// transposed gradient. The products of the forward pass are made once after an update, so that
/// here is the rest of them alone.
class MergedBackward final : public torch::autograd::Node {
 public:
  MergedBackward(at::Tensor a, at::Tensor b, double scale, bool is_transposed)
      : torch::autograd::Node(torch::autograd::collect_next_edges(a, b)),
        a_(std::move(a)),
        b_(std::move(b)),
        scale_(scale),
        is_transposed_(is_transposed) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const at::NoGradGuard no_grad;
    const auto& d_weight = gradients[0];
    if (!d_weight.defined()) return {at::Tensor(), at::Tensor()};
    const auto scaled = (is_transposed_ ? d_weight.t() : d_weight).to(at::kFloat) * scale_;
    // Weights that ZeRO has gathered for this block are there, as in any backward of it.
    return {at::mm(b_.detach().to(at::kFloat).t(), scaled).to(a_.scalar_type()),
            at::mm(scaled, a_.detach().to(at::kFloat).t()).to(b_.scalar_type())};
  }
  std::string name() const override { return "MergedBackward"; }

 private:
  at::Tensor a_, b_;
  double scale_;
  bool is_transposed_;
};

}  // namespace

Lora::Lora(const TrainPlan& plan, const Workload& workload, ModelKeeper keeper)
    : scale_(plan.lora.scale()),
      ema_decay_(plan.ema_decay),
      keeper_(std::move(keeper)),
      specs_(tensors_of(plan, workload)),
      model_tensors_(workload.tensors().size()) {
  for (const auto& target : lora_targets_of(plan, workload))
    merged_.push_back({.at = target, .name = specs_[target.weight].name});
  for (const auto& block : workload.blocks()) {
    auto& used = of_blocks_.emplace_back();
    for (std::size_t i = 0; i < merged_.size(); ++i)
      if (std::ranges::count(block.tensors, merged_[i].at.weight) > 0) used.push_back(i);
  }
}

Lora::~Lora() = default;

ModelKeeper Lora::keeper() {
  auto keeper = keeper_;
  keeper.hooks = this;
  return keeper;
}

std::vector<at::Tensor> Lora::with_adapters(std::vector<at::Tensor> of_model,
                                            const ModelOptions& options) {
  auto own = options;
  own.seed ^= kAdapterSeed;
  ModelKeeper keeper;
  keeper.place = [this](std::size_t index, const at::Tensor& initial) {
    return keeper_.place(model_tensors_ + index, initial);
  };
  for (auto& tensor : initial_tensors(std::span(specs_).subspan(model_tensors_), own, keeper))
    of_model.push_back(std::move(tensor));
  for (auto& merged : merged_) {
    merged.weight = of_model[merged.at.weight];
    merged.base = of_model[merged.at.base];
    merged.a = of_model[merged.at.a];
    merged.b = of_model[merged.at.b];
    if (ema_decay_ > 0) merged.average = merged.weight.detach().clone();
  }
  return of_model;
}

void Lora::begin(bool is_afresh) {
  const at::NoGradGuard no_grad;
  if (is_afresh)
    for (auto& merged : merged_) merged.base.copy_(merged.weight);
  merge();
}

void Lora::merge() {
  const at::NoGradGuard no_grad;
  for (auto& merged : merged_) {
    merged.weight.detach_();
    merged.weight.copy_(merged.base);
    const auto a = merged.a.detach().to(at::kFloat), b = merged.b.detach().to(at::kFloat);
    const bool is_transposed = merged.at.is_transposed;
    merged.weight.addmm_(is_transposed ? a.t() : b, is_transposed ? b.t() : a, /*beta=*/1,
                         /*alpha=*/scale_);
  }
}

void Lora::begin_pass() {
  for (auto& merged : merged_) merged.is_attached = false;
}

/// In the first block that uses the weight: in backward this node then comes when all of its
/// gradients are there, and before what belongs to earlier blocks.
void Lora::attach(Merged& merged) {
  if (std::exchange(merged.is_attached, true) || !at::GradMode::is_enabled()) return;
  merged.weight.detach_();
  const std::shared_ptr<torch::autograd::Node> node(
      new MergedBackward(merged.a, merged.b, scale_, merged.at.is_transposed),
      torch::autograd::deleteNode);
  torch::autograd::create_gradient_edge(merged.weight, node);
}

void Lora::before(std::size_t block) {
  if (keeper_.hooks != nullptr) keeper_.hooks->before(block);
  for (const auto index : of_blocks_[block]) attach(merged_[index]);
}

void Lora::after(std::size_t block, const at::Tensor& output) {
  if (keeper_.hooks != nullptr) keeper_.hooks->after(block, output);
}

void Lora::hold() {
  if (keeper_.hooks != nullptr) keeper_.hooks->hold();
}

void Lora::move_averages() {
  if (ema_decay_ == 0) return;
  std::vector<at::Tensor> averages, weights;
  for (const auto& merged : merged_) {
    averages.push_back(merged.average);
    weights.push_back(merged.weight.detach());
  }
  update_averages(averages, weights, ema_decay_);
}

void Lora::append_averages(std::vector<NamedTensor>& list) const {
  if (ema_decay_ == 0) return;
  for (const auto& merged : merged_)
    list.push_back(
        {.name = merged.name, .tensor = merged.average, .shape = merged.average.sizes().vec()});
}

std::unique_ptr<Lora> make_lora(const TrainPlan& plan, const Workload& workload,
                                ModelKeeper keeper) {
  if (plan.lora.rank == 0) return nullptr;
  return std::make_unique<Lora>(plan, workload, std::move(keeper));
}

}  // namespace tj::trainer
