#include "trainer/workloads/qwen_vggt/qwen_vggt.h"

#include <torch/types.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "contract/result.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

std::vector<const SceneFrames*> scenes_of(const ConversationBatch& batch) {
  std::vector<const SceneFrames*> scenes;
  for (const auto& sample : batch.samples)
    if (sample.scene) scenes.push_back(&*sample.scene);
  return scenes;
}

}  // namespace

/// Qwen counts its own blocks; that of the coupling stands between its two towers.
struct QwenVggt::Hooks final : BlockHooks {
  Hooks(BlockHooks& of_all, std::size_t behind) : all(of_all), first_behind(behind) {}

  void before(std::size_t index) override { all.before(place(index)); }
  void after(std::size_t index, const at::Tensor& output) override {
    all.after(place(index), output);
  }
  std::size_t place(std::size_t index) const { return index < first_behind ? index : index + 1; }

  BlockHooks& all;
  std::size_t first_behind;
};

QwenVggt::QwenVggt(const QwenVggtConfig& config, const ModelOptions& options,
                   const ModelKeeper& keeper, std::unique_ptr<SceneFeatures> features)
    : config_(config),
      options_(options),
      layout_(qwen_vggt_tensors(config)),
      parameters_(initial_tensors(layout_.specs, options, keeper)),
      hooks_(keeper.hooks),
      features_(std::move(features)) {
  make_qwen(keeper.hooks);
}

QwenVggt::QwenVggt(std::vector<at::Tensor> weights, const QwenVggtConfig& config,
                   const ModelOptions& options, std::unique_ptr<SceneFeatures> features)
    : config_(config),
      options_(options),
      layout_(qwen_vggt_tensors(config)),
      parameters_(std::move(weights)),
      features_(std::move(features)) {
  TJ_CHECK(parameters_.size() == layout_.specs.size(), "all tensors of the model");
  make_qwen(nullptr);
}

QwenVggt::~QwenVggt() = default;

void QwenVggt::make_qwen(BlockHooks* hooks) {
  TJ_CHECK((features_ != nullptr) == config_.coupling.has_value(), "a VGGT of a coupled model");
  auto own = parameters_;
  const auto first = own.begin() + static_cast<std::ptrdiff_t>(layout_.geometry);
  own.erase(first, first + static_cast<std::ptrdiff_t>(layout_.geometry_count));
  BlockHooks* of_qwen = hooks;
  if (hooks != nullptr && config_.coupling) {
    qwen_hooks_ = std::make_unique<Hooks>(*hooks, layout_.geometry_block);
    of_qwen = qwen_hooks_.get();
  }
  qwen_ = std::make_unique<Qwen>(std::move(own), config_.qwen, options_, of_qwen);
}

/// A picture of the newest one's grid has the coupling's tokens added to its own.
at::Tensor QwenVggt::with_scenes(const ConversationBatch& batch, const at::Tensor& pictures,
                                 const std::vector<at::Tensor>& features) const {
  const Autocast autocast(options_.precision, pictures.device().type());
  const auto geometry = config_.geometry();
  const auto own = at::TensorList(parameters_).slice(layout_.geometry, layout_.geometry_count);
  std::vector<at::Tensor> parts;
  auto next = features.begin();
  for (const auto& sample : batch.samples) {
    at::Tensor tokens;
    if (sample.scene) tokens = geometry_tokens(*next++, sample.scene->grid, own, geometry);
    for (const auto& picture : sample.pictures) {
      const auto part = pictures.narrow(0, picture.first_token, picture.tokens);
      parts.push_back(picture.is_like_newest ? with_geometry(part, tokens, geometry) : part);
    }
  }
  return at::cat(parts);
}

at::Tensor QwenVggt::pictures(const ConversationBatch& batch) const {
  if (!features_) return pictures(batch, {});
  const auto scenes = scenes_of(batch);
  if (scenes.empty() && !features_->is_shared_out()) return pictures(batch, {});
  return pictures(batch, features_->newest(scenes));
}

/// `features` of each scene.
at::Tensor QwenVggt::pictures(const ConversationBatch& batch,
                              const std::vector<at::Tensor>& features) const {
  const auto plain = qwen_->pictures(batch.qwen);
  if (features.empty()) return plain;
  return in_block(hooks_, layout_.geometry_block,
                  [&] { return with_scenes(batch, plain, features); });
}

void QwenVggt::ahead(const Batch& next) const {
  constexpr std::size_t kBegunMax = 2;
  if (!features_ || features_->is_shared_out()) return;
  if (begun_.size() == kBegunMax) begun_.pop_front();
  auto& begun = begun_.emplace_back(Begun{.tokens = next[kConversationTokens],
                                          .made = conversation_batch(next, config_.qwen),
                                          .features = {}});
  begun.features = features_->begin(scenes_of(begun.made));
}

/// Those that were begun before it and did not come are dropped.
std::optional<QwenVggt::Begun> QwenVggt::take_begun(const Batch& batch) const {
  const auto found = std::ranges::find_if(
      begun_, [&](const Begun& begun) { return begun.tokens.is_same(batch[kConversationTokens]); });
  if (found == begun_.end()) return std::nullopt;
  auto begun = std::move(*found);
  begun_.erase(begun_.begin(), std::next(found));
  return begun;
}

PassSums QwenVggt::pass(const Batch& batch, std::optional<std::int64_t> first_sample) const {
  auto begun = take_begun(batch);
  const auto made = begun ? std::move(begun->made) : conversation_batch(batch, config_.qwen);
  const auto seen =
      begun ? pictures(made, features_->take(std::move(begun->features))) : pictures(made);
  const auto logits = qwen_->judged(made.qwen, seen);
  const auto& targets = made.qwen.target_ids;
  PassSums sums{.loss = at::cross_entropy_loss(logits, targets, /*weight=*/{}, at::Reduction::Sum),
                .metrics = std::vector<at::Tensor>(
                    kQwenVggtSums, torch::zeros({}, logits.options().requires_grad(false)))};
  const at::NoGradGuard no_gradients;
  const auto is_right = logits.argmax(-1).eq(targets);
  sums.metrics[kRightTokens] = is_right.sum();
  if (first_sample) return sums;
  const auto wrong_of_answer =
      torch::zeros({made.answer_count}, targets.options())
          .index_add(0, made.answers, is_right.logical_not().to(at::kLong));
  sums.metrics[kRightAnswers] = wrong_of_answer.eq(0).sum();
  sums.metrics[kAnswers] = torch::full({}, made.answer_count, targets.options());
  return sums;
}

}  // namespace tj::trainer
