// Shapes: B samples, N images, P tokens of the prefix, S of the suffix.
#include "trainer/workloads/pi0/pi0.h"

#include <torch/types.h>

#include <cmath>
#include <utility>

#include "contract/result.h"
#include "trainer/workload/attention.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/recomputed.h"
#include "trainer/workloads/pi0/siglip.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kPatchTensors = 3;
constexpr std::size_t kProjectorTensors = 4;

at::Tensor linear(const at::Tensor& x, at::TensorList tensors) {
  return at::linear(x, tensors[0], tensors[1]);
}

}  // namespace

Pi0::Pi0(const Pi0Config& config, const ModelOptions& options, const ModelKeeper& keeper)
    : config_(config),
      options_(options),
      hooks_(keeper.hooks),
      layout_(pi0_tensors(config)),
      parameters_(initial_tensors(layout_.specs, options, keeper)) {}

Pi0::Pi0(std::vector<at::Tensor> weights, const Pi0Config& config, const ModelOptions& options)
    : config_(config),
      options_(options),
      hooks_(nullptr),
      layout_(pi0_tensors(config)),
      parameters_(std::move(weights)) {
  TJ_CHECK(parameters_.size() == layout_.specs.size(), "all tensors of the model");
}

Pi0::~Pi0() = default;

at::TensorList Pi0::part(std::size_t first, std::size_t count) const {
  return at::TensorList(parameters_).slice(first, count);
}

/// Its tensors stand one behind the other.
at::TensorList Pi0::block(std::size_t index) const {
  const auto& tensors = layout_.blocks[index].tensors;
  return part(tensors.front(), tensors.size());
}

GemmaLayer Pi0::prefix_layer(std::size_t layer) const {
  return {part(layout_.layers[layer].prefix, kTensorsOfGemmaLayer),
          {.heads = config_.heads, .width = config_.head_width},
          {}};
}

GemmaLayer Pi0::expert_layer(std::size_t layer, const at::Tensor& condition) const {
  const auto count = config_.is_pi05() ? kTensorsOfAdaptiveLayer : kTensorsOfGemmaLayer;
  return {part(layout_.layers[layer].expert, count),
          {.heads = config_.heads, .width = config_.head_width},
          condition};
}

Pi0::Places Pi0::places(const Pi0Observation& observation) const {
  const auto rule = pi0_visibility(config_, observation.image_mask, observation.token_mask);
  return {.visible = rule.visible, .rotation = rotation_of(rule.positions, config_.head_width)};
}

/// Where the pieces are recomputed, what is between inputs and outputs is not kept.
Tensors Pi0::computed(std::size_t block_index, const Tensors& inputs,
                      const std::function<Tensors(const Tensors&)>& compute) const {
  if (!options_.recompute || !at::GradMode::is_enabled()) return compute(inputs);
  return recomputed(
      {.compute = compute, .parameters = block(block_index), .precision = options_.precision},
      inputs);
}

/// [N, tokens of an image, width of the prefix] of [N, 3, side, side].
at::Tensor Pi0::image_tokens(const at::Tensor& images) const {
  std::size_t next = 0;
  auto x = in_block(hooks_, next++,
                    [&] { return siglip_patches(images, part(layout_.patches, kPatchTensors)); });
  for (const auto first : layout_.vision_layers) {
    const auto index = next++;
    x = in_block(hooks_, index, [&] {
      return computed(index, {x}, [this, first](const Tensors& inputs) -> Tensors {
        return {siglip_layer(inputs[0], part(first, kTensorsOfVisionLayer), config_.vision.heads)};
      })[0];
    });
  }
  return in_block(hooks_, next,
                  [&] { return siglip_projected(x, part(layout_.projector, kProjectorTensors)); });
}

/// Words are scaled by the root of the width, images are not.
at::Tensor Pi0::prefix(const Pi0Observation& observation) const {
  const auto& images = observation.images;
  const auto of_images =
      image_tokens(images.flatten(0, 1)).view({images.size(0), -1, config_.prefix.width});
  const auto of_words = in_block(hooks_, layout_.vision_layers.size() + 2, [&] {
    // As float32 before the lookup: so the gradient of a token that comes often is summed in it.
    const auto& words = parameters_[layout_.words];
    const auto looked_up = at::GradMode::is_enabled() ? words.to(at::kFloat) : words;
    return at::embedding(looked_up, observation.tokens).to(at::kFloat) *
           std::sqrt(static_cast<double>(config_.prefix.width));
  });
  return at::cat({of_images, of_words}, 1);
}

/// The tokens are made last: their gradient announces the backward of the block.
Pi0::Suffix Pi0::suffix(const at::Tensor& state, const at::Tensor& noisy,
                        const at::Tensor& time) const {
  const auto index = layout_.vision_layers.size() + 3;
  const auto matrix = [&](std::size_t place) { return part(layout_.suffix + 2 * place, 2); };
  const auto of_time = time_embedding(time, config_.expert.width);
  Suffix suffix;
  suffix.tokens = in_block(hooks_, index, [&] {
    if (config_.is_pi05()) {
      suffix.condition =
          at::silu(linear(at::silu(linear(of_time, matrix(1))), matrix(2))).to(at::kFloat);
      return linear(noisy, matrix(0)).to(at::kFloat);
    }
    const auto of_state = linear(state, matrix(0)).unsqueeze(1);
    const auto of_actions = linear(noisy, matrix(1));
    const auto for_each = of_time.unsqueeze(1).expand(of_actions.sizes());
    const auto mixed =
        at::silu(linear(at::cat({of_actions, for_each.to(of_actions.options())}, 2), matrix(2)));
    return at::cat({of_state, linear(mixed, matrix(3))}, 1).to(at::kFloat);
  });
  return suffix;
}

/// `streams`: of prefix and expert, and the condition of adaRMS where there is one. The last layer
/// leaves out what of the prefix nobody sees.
Tensors Pi0::joint_layer(std::size_t layer, const Tensors& streams, const Places& places) const {
  using enum GemmaLayer::Wants;
  const bool is_last = layer + 1 == layout_.layers.size();
  const auto &prefix = streams[0], &suffix = streams[1];
  const auto prefix_count = prefix.size(1), suffix_count = suffix.size(1);
  const auto of_prefix = prefix_layer(layer);
  const auto of_suffix = expert_layer(layer, streams.size() > 2 ? streams[2] : at::Tensor{});
  const auto p = of_prefix.projected(prefix, places.rotation.narrowed(0, prefix_count),
                                     is_last ? keys_and_values : all);
  const auto s =
      of_suffix.projected(suffix, places.rotation.narrowed(prefix_count, suffix_count), all);
  const auto q = is_last ? s.q : at::cat({p.q, s.q}, 2);
  const auto visible =
      is_last ? places.visible.narrow(2, prefix_count, suffix_count) : places.visible;
  const auto mixed = masked_attention(q, at::cat({p.k, s.k}, 2), at::cat({p.v, s.v}, 2), visible);
  if (is_last) return {of_suffix.finished(suffix, mixed, s.gate)};
  // The expert's comes last: its gradient announces the backward of the block.
  auto prefix_out = of_prefix.finished(prefix, mixed.narrow(2, 0, prefix_count), p.gate);
  auto suffix_out = of_suffix.finished(suffix, mixed.narrow(2, prefix_count, suffix_count), s.gate);
  return {std::move(prefix_out), std::move(suffix_out)};
}

at::Tensor Pi0::velocity(const at::Tensor& expert_stream, const at::Tensor& condition) const {
  const std::size_t norm_tensors = config_.is_pi05() ? 2 : 1;
  const auto head = part(layout_.head + 1, norm_tensors + 2);  // behind the prefix's norm
  const auto actions =
      expert_stream.narrow(1, config_.suffix_tokens() - config_.horizon, config_.horizon);
  const auto normed = gemma_norm(actions, head.slice(0, norm_tensors), condition);
  return linear(normed.x, head.slice(norm_tensors)).to(at::kFloat);
}

at::Tensor Pi0::loss(const Pi0Batch& batch, const FlowDraw& draw) const {
  const Autocast autocast(options_.precision, batch.actions.device().type());
  const auto where = places(batch.observation);
  Tensors streams{prefix(batch.observation)};
  const auto tokens =
      suffix(batch.observation.state, noisy_actions(batch.actions, draw), draw.time);
  streams.push_back(tokens.tokens);
  auto next = layout_.vision_layers.size() + 4;
  for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer, ++next) {
    in_block(hooks_, next, [&] {
      auto inputs = streams;
      // As a tensor of its own: so its gradient is summed up layer by layer, recomputed or not.
      if (tokens.condition.defined()) inputs.push_back(tokens.condition.alias());
      streams = computed(next, inputs, [this, layer, where](const Tensors& of_layer) {
        return joint_layer(layer, of_layer, where);
      });
      return streams.back();
    });
  }
  return in_block(hooks_, next, [&] {
    const auto error =
        velocity(streams.back(), tokens.condition) - flow_velocity(batch.actions, draw);
    return error.narrow(2, 0, config_.actions_counted).square().sum();
  });
}

PassSums Pi0::pass(const Batch& batch, std::optional<std::int64_t> first_sample) const {
  const auto inputs = pi0_batch(batch);
  const auto& actions = inputs.actions;
  if (first_sample) {
    const auto draw = flow_draw(options_.seed, *first_sample, actions.sizes(), actions.device());
    const auto none = torch::zeros({}, actions.options());
    return {.loss = loss(inputs, draw), .metrics = Tensors(kPi0MetricSums, none)};
  }
  if (hooks_ != nullptr) hooks_->hold();
  const auto draw =
      flow_draw_by_number(options_.seed, inputs.numbers, actions.sizes(), actions.device());
  auto of_loss = loss(inputs, draw);  // which brings all blocks
  return {.loss = std::move(of_loss), .metrics = action_errors(inputs)};
}

std::vector<at::Tensor> Pi0::action_errors(const Pi0Batch& batch) const {
  const auto& actions = batch.actions;
  const auto noise =
      sampling_noise(options_.seed, batch.numbers, actions.sizes(), actions.device());
  const auto errors = (sampled_actions(batch.observation, noise) - actions)
                          .narrow(2, 0, config_.actions_counted)
                          .abs()
                          .masked_fill(batch.action_pad.unsqueeze(2), 0);
  const auto counted = batch.action_pad.logical_not().sum() * config_.actions_counted;
  return {errors.sum(), counted.to(at::kFloat)};
}

std::vector<Pi0::Seen> Pi0::seen(const Pi0Observation& observation, const Places& places) const {
  using enum GemmaLayer::Wants;
  auto x = prefix(observation);
  const auto count = x.size(1);
  const auto rotation = places.rotation.narrowed(0, count);
  const auto visible = places.visible.narrow(2, 0, count).narrow(3, 0, count);
  std::vector<Seen> seen;
  for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer) {
    const bool is_last = layer + 1 == layout_.layers.size();
    const auto of_prefix = prefix_layer(layer);
    const auto p = of_prefix.projected(x, rotation, is_last ? keys_and_values : all);
    seen.push_back({.k = p.k, .v = p.v});
    if (!is_last) x = of_prefix.finished(x, masked_attention(p.q, p.k, p.v, visible), p.gate);
  }
  return seen;
}

at::Tensor Pi0::next_velocity(const std::vector<Seen>& seen, const Suffix& suffix,
                              const Places& places) const {
  auto x = suffix.tokens;
  const auto count = x.size(1), before = config_.prefix_tokens();
  const auto rotation = places.rotation.narrowed(before, count);
  const auto visible = places.visible.narrow(2, before, count);
  for (std::size_t layer = 0; layer < layout_.layers.size(); ++layer) {
    const auto of_suffix = expert_layer(layer, suffix.condition);
    const auto s = of_suffix.projected(x, rotation, GemmaLayer::Wants::all);
    const auto mixed = masked_attention(s.q, at::cat({seen[layer].k, s.k}, 2),
                                        at::cat({seen[layer].v, s.v}, 2), visible);
    x = of_suffix.finished(x, mixed, s.gate);
  }
  return velocity(x, suffix.condition);
}

at::Tensor Pi0::sampled_actions(const Pi0Observation& observation, const at::Tensor& noise,
                                int steps) const {
  TJ_CHECK(steps >= 1, "some way to go");
  const at::NoGradGuard no_gradients;
  const Autocast autocast(options_.precision, noise.device().type());
  const auto where = places(observation);
  const auto looked = seen(observation, where);
  auto actions = noise;
  for (int step = 0; step < steps; ++step) {
    const auto time = at::full({noise.size(0)}, 1.0 - static_cast<double>(step) / steps,
                               noise.options().dtype(at::kFloat));
    actions = actions - next_velocity(looked, suffix(observation.state, actions, time), where) /
                            static_cast<double>(steps);
  }
  return actions;
}

}  // namespace tj::trainer
