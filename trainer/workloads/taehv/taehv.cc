#include "trainer/workloads/taehv/taehv.h"

#include <torch/types.h>

#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/ssim.h"

namespace tj::trainer {
namespace {
using Kind = TaehvLayer::Kind;

constexpr double kByteMax = 255;

at::Tensor convolved(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     std::int64_t stride = 1) {
  const auto padding = weight.size(-1) / 2;
  return at::conv2d(x, weight, bias, stride, padding);
}

/// [N, T, C, H, W] to [N T, C p p, H / p, W / p].
at::Tensor folded(const at::Tensor& frames, std::int64_t patch) {
  const auto x = frames.flatten(0, 1);
  return patch == 1 ? x : at::pixel_unshuffle(x, patch);
}

at::Tensor unfolded(const at::Tensor& patches, std::int64_t patch, std::int64_t clips) {
  const auto x = patch == 1 ? patches : at::pixel_shuffle(patches, patch);
  return x.unflatten(0, {clips, -1});
}

/// Of each frame [clips T, C, H, W] the one before it in its clip; zeros before the first.
at::Tensor frames_before(const at::Tensor& x, std::int64_t clips) {
  const auto by_clip = x.unflatten(0, {clips, -1});
  const auto none = torch::zeros_like(by_clip.narrow(1, 0, 1));
  return at::cat({none, by_clip.narrow(1, 0, by_clip.size(1) - 1)}, 1).flatten(0, 1);
}

}  // namespace

Taehv::Taehv(const TaehvConfig& config, const TaehvLoss& loss, const ModelOptions& options,
             const ModelKeeper& keeper)
    : config_(config),
      loss_(loss),
      options_(options),
      hooks_(keeper.hooks),
      layers_(taehv_layers(config)),
      tensors_(initial_tensors(layers_.tensors, options, keeper)) {}

/// `past` is for a MemBlock.
at::Tensor Taehv::apply_one(const TaehvLayer& layer, const at::Tensor& x,
                            const at::Tensor& past) const {
  const auto tensor = [&](std::size_t i) -> const at::Tensor& {
    return tensors_[layer.first_tensor + i];
  };
  switch (layer.kind) {
    case Kind::clamp: return at::tanh(x / 3) * 3;
    case Kind::relu: return at::relu(x);
    case Kind::conv:
      return convolved(x, tensor(0), layer.has_bias ? tensor(1) : at::Tensor(), layer.stride);
    case Kind::memory: {
      auto added = at::relu(convolved(at::cat({x, past}, 1), tensor(0), tensor(1)));
      added = at::relu(convolved(added, tensor(2), tensor(3)));
      return at::relu(convolved(added, tensor(4), tensor(5)) + x);
    }
    case Kind::pool: {
      const auto frames = x.unflatten(0, {-1, layer.stride}).flatten(1, 2);
      return convolved(frames, tensor(0), {});
    }
    case Kind::grow:
      return convolved(x, tensor(0), {}).unflatten(1, {layer.stride, -1}).flatten(0, 1);
    case Kind::upsample:
      return at::upsample_nearest2d(x, at::IntArrayRef{2 * x.size(-2), 2 * x.size(-1)});
  }
  TORCH_CHECK(false, "a layer of a kind without a name");
}

at::Tensor Taehv::apply(std::span<const TaehvLayer> layers, at::Tensor x,
                        std::int64_t clips) const {
  for (const auto& layer : layers) {
    const auto past = layer.kind == Kind::memory ? frames_before(x, clips) : at::Tensor();
    x = apply_one(layer, x, past);
  }
  return x;
}

at::Tensor Taehv::apply_pieces(const std::vector<TaehvLayer>& layers,
                               const std::array<std::size_t, kStages>& pieces,
                               std::size_t first_block, at::Tensor x, std::int64_t clips) const {
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const auto end = piece + 1 < pieces.size() ? pieces[piece + 1] : layers.size();
    x = in_block(hooks_, first_block + piece, [&] {
      return apply(std::span(layers).subspan(pieces[piece], end - pieces[piece]), x, clips);
    });
  }
  return x;
}

/// Of frames [N, T, 3, H, W], without the first frames_to_trim(); not clamped.
at::Tensor Taehv::reconstructed(const at::Tensor& frames) const {
  const Autocast autocast(options_.precision, frames.device().type());
  const auto clips = frames.size(0);
  const auto latents =
      apply_pieces(layers_.encoder, kEncoderPieces, 0, folded(frames, config_.patch), clips);
  const auto patches = apply_pieces(layers_.decoder, kDecoderPieces, kStages, latents, clips);
  return unfolded(patches, config_.patch, clips).to(at::kFloat).slice(1, config_.frames_to_trim());
}

PassSums Taehv::pass(const Batch& batch, std::optional<std::int64_t> first_sample) const {
  const auto frames = batch.at(0).to(at::kFloat) / kByteMax;
  const auto made = reconstructed(frames);
  const auto wanted = frames.slice(1, config_.frames_to_trim());
  const auto error = made - wanted;
  auto loss = error.square().sum() * loss_.squared;
  if (loss_.absolute > 0) loss = loss + error.abs().sum() * loss_.absolute;
  const at::NoGradGuard no_gradients;
  const auto seen = made.clamp(0, 1);
  // It costs as much as a convolution of the model, and steps don't tell it.
  const auto similarity = first_sample ? torch::zeros({}, loss.options())
                                       : ssim(seen, wanted) * static_cast<double>(seen.numel());
  return {.loss = loss, .metrics = {(seen - wanted).square().sum(), similarity}};
}

at::Tensor Taehv::picture(const Batch& batch) const {
  constexpr std::int64_t kClipsMax = 8, kGap = 2;
  constexpr double kErrorGain = 4;
  const auto frames = batch.at(0).slice(0, 0, kClipsMax).to(at::kFloat) / kByteMax;
  const auto made = reconstructed(frames).clamp(0, 1);
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
  const auto patches = apply(layers_.decoder, latents.flatten(0, 1), clips);
  const auto frames = unfolded(patches, config_.patch, clips).to(at::kFloat);
  return frames.slice(1, config_.frames_to_trim()).clamp(0, 1);
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
    if (layer.kind == Kind::memory) {
      const auto past = kept.empty() ? torch::zeros_like(x) : kept.front();
      kept = {x};
      x = model_.apply_one(layer, x, past);
    } else if (layer.kind == Kind::pool) {
      kept.push_back(x);
      if (static_cast<std::int64_t>(kept.size()) < layer.stride) return;
      // Frames of one clip stand beside each other, as apply_one() expects them.
      x = model_.apply_one(layer, at::stack(kept, 1).flatten(0, 1), {});
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
  feed(0, input, made);
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
