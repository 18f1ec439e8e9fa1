#include "trainer/workloads/qwen_vggt/qwen.h"

#include <torch/types.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "contract/result.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/model.h"
#include "trainer/workload/recomputed.h"
#include "trainer/workloads/qwen_vggt/qwen_layer.h"
#include "trainer/workloads/qwen_vggt/qwen_vision.h"

namespace tj::trainer {

Qwen::Qwen(const QwenConfig& config, const ModelOptions& options, const ModelKeeper& keeper)
    : config_(config),
      options_(options),
      hooks_(keeper.hooks),
      layout_(qwen_tensors(config)),
      parameters_(initial_tensors(layout_.specs, options, keeper)) {}

Qwen::Qwen(std::vector<at::Tensor> weights, const QwenConfig& config, const ModelOptions& options,
           BlockHooks* hooks)
    : config_(config),
      options_(options),
      hooks_(hooks),
      layout_(qwen_tensors(config)),
      parameters_(std::move(weights)) {
  TJ_CHECK(parameters_.size() == layout_.specs.size(), "all tensors of the model");
}

at::TensorList Qwen::part(std::size_t first, std::size_t count) const {
  return at::TensorList(parameters_).slice(first, count);
}

/// Where layers are recomputed, what is between input and output is not kept. `compute` outlives
/// the call.
at::Tensor Qwen::computed(const at::Tensor& x, at::TensorList tensors,
                          const std::function<at::Tensor(const at::Tensor&)>& compute) const {
  if (!options_.recompute || !at::GradMode::is_enabled()) return compute(x);
  const auto all = [compute](const Tensors& inputs) -> Tensors { return {compute(inputs[0])}; };
  return recomputed({.compute = all, .parameters = tensors, .precision = options_.precision},
                    {x})[0];
}

at::Tensor Qwen::pictures(const QwenBatch& batch) const {
  if (!batch.patches.defined()) return {};
  const Autocast autocast(options_.precision, batch.patches.device().type());
  const auto& vision = config_.vision;
  const auto plan =
      std::make_shared<const VisionPlan>(vision_plan(batch.grids, vision, batch.patches.device()));
  std::size_t next = 0;
  auto x = in_block(hooks_, next++, [&] {
    return vision_patches(batch.patches, parameters_[layout_.patches], *plan);
  });
  for (std::size_t layer = 0; layer < layout_.vision_layers.size(); ++layer) {
    const auto number = static_cast<std::int64_t>(layer);
    const bool is_full = std::ranges::binary_search(vision.full_layers, number);
    const auto tensors = part(layout_.vision_layers[layer], kTensorsOfQwenVisionLayer);
    x = in_block(hooks_, next++, [&] {
      return computed(x, tensors, [this, plan, tensors, is_full](const at::Tensor& input) {
        return vision_layer(input, tensors, config_.vision, is_full ? plan->frames : plan->windows,
                            plan->turns);
      });
    });
  }
  return in_block(hooks_, next, [&] {
    return vision_merged(x, part(layout_.merger, kTensorsOfQwenMerger), vision, *plan);
  });
}

/// As float32 before the lookup: so the gradient of a token that comes often is summed in it.
at::Tensor Qwen::words(const at::Tensor& tokens) const {
  const auto& table = parameters_[layout_.words];
  const auto looked_up = at::GradMode::is_enabled() ? table.to(at::kFloat) : table;
  return at::embedding(looked_up, tokens).to(at::kFloat);
}

/// Tokens as the first layer gets them: pictures in place of their pads.
at::Tensor Qwen::with_pictures(const QwenBatch& batch, const at::Tensor& pictures) const {
  const auto x =
      in_block(hooks_, layout_.vision_layers.size() + 2, [&] { return words(batch.tokens); });
  if (!pictures.defined()) return x;
  return x.flatten(0, 1).index_copy(0, batch.pads, pictures).view(x.sizes());
}

at::Tensor Qwen::hidden(const QwenBatch& batch, const at::Tensor& pictures,
                        const at::Tensor& rows) const {
  const Autocast autocast(options_.precision, batch.tokens.device().type());
  auto x = with_pictures(batch, pictures);
  auto next = layout_.vision_layers.size() + 3;
  const auto turns =
      mrope_turns(batch.positions, config_.text.mrope_sections, config_.text.rotary_base);
  for (const auto first : layout_.layers) {
    const auto tensors = part(first, kTensorsOfQwenLayer);
    // Nobody reads the others of the last layer.
    const auto wanted = first == layout_.layers.back() ? rows : at::Tensor();
    x = in_block(hooks_, next++, [&] {
      return computed(x, tensors, [this, tensors, turns, wanted](const at::Tensor& input) {
        return wanted.defined() ? qwen_layer_of(wanted, input, tensors, config_.text, turns)
                                : qwen_layer(input, tensors, config_.text, turns);
      });
    });
  }
  return x;
}

/// Logits of any tokens [..., width].
at::Tensor Qwen::said(const at::Tensor& hidden) const {
  const Autocast autocast(options_.precision, hidden.device().type());
  const auto index = layout_.vision_layers.size() + layout_.layers.size() + 3;
  return in_block(hooks_, index, [&] {
    const auto normed = qwen_norm(hidden, parameters_[layout_.norm], config_.text.norm_eps);
    return at::linear(normed, parameters_[layout_.head]).to(at::kFloat);
  });
}

at::Tensor Qwen::logits(const QwenBatch& batch) const {
  return said(hidden(batch, pictures(batch)));
}

at::Tensor Qwen::judged(const QwenBatch& batch, const at::Tensor& pictures) const {
  return said(hidden(batch, pictures, batch.judged));
}

at::Tensor Qwen::loss(const QwenBatch& batch, const at::Tensor& pictures) const {
  return at::cross_entropy_loss(judged(batch, pictures), batch.target_ids, /*weight=*/{},
                                at::Reduction::Sum);
}

at::Tensor Qwen::next(const QwenBatch& batch, const at::Tensor& pictures, QwenCache& cache) const {
  TJ_CHECK(hooks_ == nullptr, "the weights are there all the time");
  const at::NoGradGuard no_gradients;
  const Autocast autocast(options_.precision, batch.tokens.device().type());
  cache.layers.resize(layout_.layers.size());
  auto x = with_pictures(batch, pictures);
  const auto turns =
      mrope_turns(batch.positions, config_.text.mrope_sections, config_.text.rotary_base);
  for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer)
    x = qwen_layer_after(cache.layers[layer], x, part(layout_.layers[layer], kTensorsOfQwenLayer),
                         config_.text, turns);
  return said(x.select(1, x.size(1) - 1));
}

}  // namespace tj::trainer
