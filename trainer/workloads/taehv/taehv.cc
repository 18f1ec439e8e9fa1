#include "trainer/workloads/taehv/taehv.h"

#include <torch/types.h>

#include <algorithm>
#include <iterator>

#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/clip_convolutions.h"
#include "trainer/workloads/taehv/ssim.h"

namespace tj::trainer {
namespace {
using Kind = TaehvLayer::Kind;

constexpr double kByteMax = 255;

/// [N, T, C, H, W] to [N T, C p p, H / p, W / p].
at::Tensor folded(const at::Tensor& frames, std::int64_t patch) {
  const auto x = frames.flatten(0, 1);
  return channels_last(patch == 1 ? x : at::pixel_unshuffle(x, patch));
}

at::Tensor unfolded(const at::Tensor& patches, std::int64_t patch, std::int64_t clips) {
  const auto x = patch == 1 ? patches : at::pixel_shuffle(patches, patch);
  return x.unflatten(0, {clips, -1});
}

/// Of each frame [clips T, C, H, W] the one before it in its clip; zeros before the first.
at::Tensor frames_before(const at::Tensor& x, std::int64_t clips) {
  const auto by_clip = x.unflatten(0, {clips, -1});
  const auto none = torch::zeros_like(by_clip.narrow(1, 0, 1));
  return channels_last(at::cat({none, by_clip.narrow(1, 0, by_clip.size(1) - 1)}, 1).flatten(0, 1));
}

}  // namespace

std::vector<TensorSpec> tensors_of(const TaehvConfig& config, const TaehvLoss& loss) {
  auto tensors = taehv_layers(config).tensors;
  if (loss.adversarial > 0)
    std::ranges::move(discriminator_tensors(config), std::back_inserter(tensors));
  return tensors;
}

std::vector<ModelBlock> blocks_of(const TaehvConfig& config, const TaehvLoss& loss) {
  const auto layers = taehv_layers(config);
  auto blocks = taehv_blocks(layers);
  if (loss.adversarial == 0) return blocks;
  ModelBlock discriminator;
  for (auto index = layers.tensors.size(); index < tensors_of(config, loss).size(); ++index)
    discriminator.tensors.push_back(index);
  blocks.push_back(std::move(discriminator));
  return blocks;
}

Taehv::Taehv(const TaehvConfig& config, const TaehvLoss& loss, const ModelOptions& options,
             const ModelKeeper& keeper)
    : config_(config),
      loss_(loss),
      options_(options),
      hooks_(keeper.hooks),
      layers_(taehv_layers(config)),
      tensors_(initial_tensors(tensors_of(config, loss), options, keeper)) {
  if (loss.adversarial == 0) return;
  TORCH_CHECK(keeper.memory != nullptr, "a discriminator remembers what was made");
  const auto first = tensors_.begin() + static_cast<std::ptrdiff_t>(layers_.tensors.size());
  adversary_.emplace(std::vector<at::Tensor>(first, tensors_.end()), options.seed, *keeper.memory);
}

/// `past` is for a layer that sees it.
at::Tensor Taehv::apply_one(const TaehvLayer& layer, const at::Tensor& x,
                            const at::Tensor& past) const {
  const auto tensor = [&](std::size_t i) -> const at::Tensor& {
    return tensors_[layer.first_tensor + i];
  };
  switch (layer.kind) {
    case Kind::clamp: return at::tanh(x / 3) * 3;
    case Kind::relu: return x.relu_();  // of a convolution, whose output nobody else needs
    case Kind::conv:
      if (layer.doubles) return convolved_doubled(x, tensor(0));
      return convolved(x, tensor(0), layer.has_bias ? tensor(1) : at::Tensor(), layer.stride);
    case Kind::memory:
      return end_memory(layer, x, convolved(at::cat({x, past}, 1), tensor(0), tensor(1)));
    case Kind::wide_memory: {
      auto added = convolved(at::cat({x, past}, 1), tensor(0), tensor(1)).relu_();
      added = convolved(added, tensor(2), tensor(3)).relu_();
      added = convolved(added, tensor(4), tensor(5)).relu_();
      return convolved(added, tensor(6), tensor(7)).add_(x).relu_();
    }
    case Kind::super_memory: {
      const auto seen = convolved(at::cat({x, past}, 1), tensor(0), {});
      const auto added = convolved(seen, tensor(1), tensor(2)).relu_();
      return convolved(added, tensor(3), {}).add_(x);
    }
    case Kind::pool: return convolved(frames_folded(x, layer.stride), tensor(0), {});
    case Kind::grow: return frames_unfolded(convolved(x, tensor(0), {}), layer.stride);
    case Kind::upsample: return x;
    case Kind::shuffle: return channels_last(at::pixel_shuffle(x, 2));
  }
  TORCH_CHECK(false, "a layer of a kind without a name");
}

/// A MemBlock behind its first convolution, which made `added`.
at::Tensor Taehv::end_memory(const TaehvLayer& layer, const at::Tensor& x, at::Tensor added) const {
  for (const auto weight : {layer.first_tensor + 2, layer.first_tensor + 4})
    added = convolved(added.relu_(), tensors_[weight], tensors_[weight + 1]);
  return added.add_(x).relu_();
}

at::Tensor Taehv::apply(std::span<const TaehvLayer> layers, at::Tensor x,
                        std::int64_t clips) const {
  for (const auto& layer : layers) {
    if (layer.kind == Kind::memory) {
      const MemoryKernel kernel{tensors_[layer.first_tensor], tensors_[layer.first_tensor + 1]};
      x = end_memory(layer, x, convolved_with_past(x, kernel, clips));
    } else {
      const auto past = layer.sees_past() ? frames_before(x, clips) : at::Tensor();
      x = without_first(apply_one(layer, x, past), layer.drops, clips);
    }
  }
  return x;
}

at::Tensor Taehv::apply_pieces(const std::vector<TaehvLayer>& layers, const TaehvPieces& pieces,
                               std::size_t first_block, at::Tensor x, std::int64_t clips) const {
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const auto end = piece + 1 < pieces.size() ? pieces[piece + 1] : layers.size();
    x = in_block(hooks_, first_block + piece, [&] {
      return apply(std::span(layers).subspan(pieces[piece], end - pieces[piece]), x, clips);
    });
  }
  return x;
}

/// Of frames [N, T, 3, H, W], without the first frames_to_trim().
Taehv::Made Taehv::reconstructed(const at::Tensor& frames) const {
  const Autocast autocast(options_.precision, frames.device().type());
  const auto clips = frames.size(0);
  const auto latents = apply_pieces(layers_.encoder, layers_.encoder_pieces, 0,
                                    folded(frames, config_.patch), clips);
  const auto patches =
      apply_pieces(layers_.decoder, layers_.decoder_pieces, kStages, latents, clips);
  return {.latents = latents.unflatten(0, {clips, -1}),
          .frames = unfolded(patches, config_.patch, clips).to(at::kFloat)};
}

PassSums Taehv::pass(const Batch& batch, std::optional<std::int64_t> first_sample) const {
  const auto frames = batch.at(0).to(at::kFloat) / kByteMax;
  const auto made = reconstructed(frames);
  const auto wanted = frames.slice(1, config_.frames_to_trim());
  const auto error = made.frames - wanted;
  PassSums sums{.loss = error.square().sum() * loss_.squared, .metrics = {}};
  if (loss_.absolute > 0) sums.loss = sums.loss + error.abs().sum() * loss_.absolute;
  {
    const at::NoGradGuard no_gradients;
    const auto seen = made.frames.clamp(0, 1);
    // It costs as much as a convolution of the model, and steps don't tell it.
    const auto similarity = first_sample ? torch::zeros({}, seen.options())
                                         : ssim(seen, wanted) * static_cast<double>(seen.numel());
    sums.metrics = {(seen - wanted).square().sum(), similarity};
  }
  if (first_sample && loss_.latent > 0) learn_from_teacher(batch, made, sums);
  if (first_sample && adversary_)
    learn_from_adversary({.real = wanted, .made = made.frames, .latents = made.latents},
                         *first_sample, sums);
  sums.metrics.resize(loss_.metric_sums(), torch::zeros({}, wanted.options()));
  return sums;
}

/// The mean over a clip's latents counts as often as the clip has values of pixels, by which the
/// sums of a step are divided: what comes of it is the mean over all clips.
void Taehv::learn_from_teacher(const Batch& batch, const Made& made, PassSums& sums) const {
  const auto apart =
      (made.latents.to(at::kFloat) - batch.at(1)).square().sum() *
      (static_cast<double>(made.frames.numel()) / static_cast<double>(made.latents.numel()));
  sums.loss = sums.loss + apart * loss_.latent;
  sums.metrics.push_back(apart.detach());
}

/// One backward does both: the discriminator's loss gives a gradient to itself alone, and the
/// target none at all. The loss that is told is the autoencoder's.
void Taehv::learn_from_adversary(const SeenClips& clips, std::int64_t first_sample,
                                 PassSums& sums) const {
  Adversary::Judgement judged;
  const auto of_clips = in_block(hooks_, 2 * kStages, [&] {
    const Autocast autocast(options_.precision, clips.real.device().type());
    judged = adversary_->judge(clips, first_sample);
    return judged.loss;
  });
  const auto discriminator_loss = of_clips * static_cast<double>(clips.made[0].numel());
  sums.loss = sums.loss + (clips.made - judged.target).square().sum() * loss_.adversarial +
              (discriminator_loss - discriminator_loss.detach());
  sums.metrics.push_back(discriminator_loss.detach());
  sums.remembered = judged.rows;
}

at::Tensor Taehv::picture(const Batch& batch) const {
  constexpr std::int64_t kClipsMax = 8, kGap = 2;
  constexpr double kErrorGain = 4;
  const auto frames = batch.at(0).slice(0, 0, kClipsMax).to(at::kFloat) / kByteMax;
  const auto made = reconstructed(frames).frames.clamp(0, 1);
  const auto wanted = frames.slice(1, config_.frames_to_trim());
  const auto middle = wanted.size(1) / 2;
  const auto one = wanted.select(1, middle), other = made.select(1, middle);
  const auto columns =
      torch::stack({one, other, ((one - other).abs() * kErrorGain).clamp(0, 1)}, 1);
  // [clips, 3 columns, 3, H, W], with a gap right of and below each, to [height, width, 3].
  const auto padded = at::constant_pad_nd(columns, {0, kGap, 0, kGap}, 1);
  return (padded.permute({0, 3, 1, 4, 2}).flatten(2, 3).flatten(0, 1) * kByteMax)
      .round()
      .to(at::kByte);
}

at::Tensor Taehv::encode(const at::Tensor& frames) const {
  const auto whole = config_.frames_of_latent();
  const auto missing = (whole - frames.size(1) % whole) % whole;
  auto padded = frames;
  if (missing > 0) {
    const auto last = frames.narrow(1, frames.size(1) - 1, 1);
    padded = at::cat({frames, last.expand({-1, missing, -1, -1, -1})}, 1);
  }
  const Autocast autocast(options_.precision, frames.device().type());
  const auto clips = frames.size(0);
  return apply(layers_.encoder, folded(padded, config_.patch), clips).unflatten(0, {clips, -1});
}

at::Tensor Taehv::decode(const at::Tensor& latents) const {
  const Autocast autocast(options_.precision, latents.device().type());
  const auto clips = latents.size(0);
  const auto patches = apply(layers_.decoder, channels_last(latents.flatten(0, 1)), clips);
  return unfolded(patches, config_.patch, clips).to(at::kFloat).clamp(0, 1);
}

TaehvStream::TaehvStream(const Taehv& model, Side side)
    : model_(model),
      side_(side),
      layers_(side == Side::encoder ? model.layers_.encoder : model.layers_.decoder),
      kept_(layers_.size()),
      to_trim_(side == Side::encoder ? 0 : model.config_.frames_to_trim()) {}

/// The work of one input, depth first, so that what comes out is in order.
void TaehvStream::feed(std::size_t index, at::Tensor x, std::vector<at::Tensor>& made) {
  for (; index < layers_.size(); ++index) {
    const auto& layer = layers_[index];
    auto& kept = kept_[index];
    if (layer.sees_past()) {
      const auto past = kept.empty() ? torch::zeros_like(x) : kept.front();
      kept = {x};
      x = model_.apply_one(layer, x, past);
    } else if (layer.kind == Kind::pool) {
      kept.push_back(x);
      if (static_cast<std::int64_t>(kept.size()) < layer.stride) return;
      // Frames of one clip stand beside each other, as apply_one() expects them.
      x = model_.apply_one(layer, channels_last(at::stack(kept, 1).flatten(0, 1)), {});
      kept.clear();
    } else if (layer.kind == Kind::grow && layer.stride > 1) {
      const auto grown = model_.apply_one(layer, x, {}).unflatten(0, {x.size(0), layer.stride});
      for (std::int64_t frame = 0; frame < layer.stride; ++frame)
        feed(index + 1, grown.select(1, frame), made);
      return;
    } else {
      x = model_.apply_one(layer, x, {});
    }
  }
  made.push_back(x);
}

std::vector<at::Tensor> TaehvStream::push(const at::Tensor& input) {
  const Autocast autocast(model_.options_.precision, input.device().type());
  const auto patch = model_.config_.patch;
  std::vector<at::Tensor> made;
  ++taken_;
  if (side_ == Side::encoder) {
    last_ = input;
    feed(0, folded(input.unsqueeze(1), patch), made);
    return made;
  }
  feed(0, channels_last(input), made);
  std::vector<at::Tensor> frames;
  for (const auto& patches : made) {
    if (to_trim_ > 0) {
      --to_trim_;
      continue;
    }
    frames.push_back(
        unfolded(patches, patch, patches.size(0)).squeeze(1).to(at::kFloat).clamp(0, 1));
  }
  return frames;
}

std::vector<at::Tensor> TaehvStream::finish() {
  std::vector<at::Tensor> made;
  if (side_ == Side::decoder || !last_.defined()) return made;
  while (taken_ % model_.config_.frames_of_latent() != 0) {
    auto latents = push(last_);
    made.insert(made.end(), latents.begin(), latents.end());
  }
  return made;
}

}  // namespace tj::trainer
