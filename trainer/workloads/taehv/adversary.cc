#include "trainer/workloads/taehv/adversary.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include "trainer/workload/draws.h"

namespace tj::trainer {
namespace {

constexpr std::uint32_t kMixPurpose = 1;  // of all draws
/// What is drawn for each group, uniform in (0, 1).
enum Drawn : std::int64_t { kIsMade, kIsOld, kWhichOld, kDraws };
constexpr double kHalf = 0.5;
constexpr double kByteMax = 255;
constexpr double kEps = 1e-5;  // of the correction's size, with a mean over the scores

std::int64_t groups_of(std::int64_t frames) {
  return (frames + kFramesOfGroup - 1) / kFramesOfGroup;
}

/// Of each group: its clip's latents, the mean over time, with the rounding of the memory.
at::Tensor context_of(const SeenClips& clips) {
  const auto mean = clips.latents.detach().to(at::kFloat).mean(1).to(at::kHalf).to(at::kFloat);
  const auto groups = groups_of(clips.made.size(1));
  return mean.unsqueeze(1).expand({-1, groups, -1, -1, -1}).flatten(0, 1);
}

/// Rows of the memory of what was made.
at::Tensor rows_of(const SeenClips& clips) {
  const auto bytes = (grouped_frames(clips.made.detach()).clamp(0, 1) * kByteMax).round();
  const auto context = context_of(clips).to(at::kHalf).contiguous();
  return at::cat({bytes.to(at::kByte).flatten(1), context.view(at::kByte).flatten(1)}, 1);
}

struct Groups {
  at::Tensor frames;
  at::Tensor context;
};

/// `like`: of the same shapes.
Groups groups_of_rows(const at::Tensor& rows, const Groups& like) {
  const auto bytes = like.frames[0].numel();
  const auto frames = rows.narrow(1, 0, bytes).reshape(like.frames.sizes());
  const auto context = rows.narrow(1, bytes, rows.size(1) - bytes).contiguous().view(at::kHalf);
  return {.frames = frames.to(at::kFloat) / kByteMax,
          .context = context.reshape(like.context.sizes()).to(at::kFloat)};
}

/// True for the rows of `flags` [n], of tensors [n, ...].
at::Tensor for_each(const at::Tensor& flags, const at::Tensor& tensor) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(tensor.dim()), 1);
  shape[0] = flags.size(0);
  return flags.reshape(shape);
}

}  // namespace

at::Tensor grouped_frames(const at::Tensor& frames) {
  const auto count = groups_of(frames.size(1)) * kFramesOfGroup;
  auto padded = frames;
  if (count > frames.size(1)) {
    const auto last = frames.narrow(1, frames.size(1) - 1, 1);
    padded = at::cat({frames, last.expand({-1, count - frames.size(1), -1, -1, -1})}, 1);
  }
  return padded.unflatten(1, {-1, kFramesOfGroup}).flatten(2, 3).flatten(0, 1);
}

at::Tensor ungrouped_frames(const at::Tensor& groups, std::int64_t clips, std::int64_t frames) {
  return groups.unflatten(0, {clips, -1})
      .unflatten(2, {kFramesOfGroup, -1})
      .flatten(1, 2)
      .narrow(1, 0, frames);
}

Adversary::Judgement Adversary::judge(const SeenClips& clips, std::int64_t first_sample) const {
  const auto rows = rows_of(clips);
  return {.loss = loss(clips, rows, first_sample),
          .target = clips.made.detach() + correction(clips),
          .rows = rows};
}

/// Half of the groups are real ones. Of the others half were made now, and half by an earlier step:
/// any that the memory holds. New ones are rounded as those are, which would else tell them apart.
at::Tensor Adversary::loss(const SeenClips& clips, const at::Tensor& rows,
                           std::int64_t first_sample) const {
  const auto count = clips.real.size(0), groups = groups_of(clips.real.size(1));
  const auto drawn =
      draw_uniform({.seed = seed_, .purpose = kMixPurpose, .first_sample = first_sample},
                   {count, groups, kDraws}, rows.device())
          .flatten(0, 1);
  auto chosen = rows;
  if (const auto filled = memory_.filled(); filled > 0) {
    const auto slots = (drawn.select(1, kWhichOld) * static_cast<double>(filled))
                           .to(at::kLong)
                           .clamp_max(filled - 1);
    const auto is_old = drawn.select(1, kIsOld).lt(kHalf);
    chosen = at::where(for_each(is_old, rows), memory_.rows().index_select(0, slots), rows);
  }
  const Groups real{.frames = grouped_frames(clips.real), .context = context_of(clips)};
  const auto made = groups_of_rows(chosen, real);
  const auto is_made = drawn.select(1, kIsMade).lt(kHalf);
  const auto scores = discriminator_.scores_in_training(
      at::where(for_each(is_made, real.frames), made.frames, real.frames),
      at::where(for_each(is_made, real.context), made.context, real.context));
  const auto wanted = for_each(is_made, scores).to(at::kFloat) * 2 - 1;
  // Of each group, then of each clip, the mean.
  return (scores - wanted).square().flatten(1).mean(1).unflatten(0, {count, groups}).mean(1).sum();
}

at::Tensor Adversary::correction(const SeenClips& clips) const {
  const auto context = context_of(clips);
  at::Tensor wanted;
  {
    const at::NoGradGuard no_gradients;
    wanted = discriminator_.scores(grouped_frames(clips.real), context);
  }
  const at::AutoGradMode with_gradients(true);
  const auto made = grouped_frames(clips.made.detach()).contiguous().requires_grad_(true);
  // A sum, where a mean would be too small for half precision; its size is taken off below.
  const auto distance = (discriminator_.scores(made, context) - wanted).square().sum();
  const auto gradient = torch::autograd::grad({distance}, {made})[0];
  const auto change = -ungrouped_frames(gradient, clips.made.size(0), clips.made.size(1));
  const auto of_clip = change.flatten(1);
  const auto deviation = (of_clip - of_clip.mean(1, /*keepdim=*/true)).square().mean(1).sqrt();
  const auto scores_of_group = static_cast<double>(wanted[0].numel());
  return (change / for_each(deviation + kEps * scores_of_group, change)).detach();
}

}  // namespace tj::trainer
