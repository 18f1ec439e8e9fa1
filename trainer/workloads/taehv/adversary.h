// The adversarial correction of a decoder's frames (seraena.py of github.com/madebyollin/seraena):
// a discriminator learns to tell them from real ones, also those that the decoder made earlier, and
// says in which direction each frame should change to look more like the real one. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/workload/step_memory.h"
#include "trainer/workloads/taehv/discriminator.h"

namespace tj::trainer {

/// A row of the memory: the bytes of a group of frames, then its context in half precision.
struct ReplayShape {
  std::int64_t side = 0;  // pixels, of a clip
  std::int64_t latent_channels = 0;
  std::int64_t latent_side = 0;

  std::int64_t frame_bytes() const { return kFramesOfGroup * kImageChannels * side * side; }
  std::int64_t row_bytes() const {
    return frame_bytes() + 2 * latent_channels * latent_side * latent_side;
  }
};

/// What a pass has seen and made of its clips.
struct SeenClips {
  at::Tensor real;     // [N, T, 3, S, S] in [0, 1]
  at::Tensor made;     // alike, not clamped
  at::Tensor latents;  // [N, T', C, s, s]
};

class Adversary {
 public:
  /// In the order of discriminator_tensors(). The memory outlives it.
  Adversary(std::vector<at::Tensor> tensors, std::uint64_t seed, const StepMemory& memory)
      : discriminator_(std::move(tensors)), seed_(seed), memory_(memory) {}

  struct Judgement {
    at::Tensor loss;    // of the discriminator, a mean for each clip: their sum
    at::Tensor target;  // for what was made: it and the correction; no gradient
    at::Tensor rows;    // for the memory
  };
  /// Nothing of it gives a gradient to the clips.
  Judgement judge(const SeenClips& clips, std::int64_t first_sample) const;

  /// As what was made: against the gradient of the distance between the scores of it and of the
  /// real frames, divided by its standard deviation in the clip (and a little more, so that it is
  /// small as long as the scores tell hardly anything apart).
  at::Tensor correction(const SeenClips& clips) const;

 private:
  at::Tensor loss(const SeenClips& clips, const at::Tensor& rows, std::int64_t first_sample) const;

  Discriminator discriminator_;
  std::uint64_t seed_;
  const StepMemory& memory_;
};

/// Groups of [N, T, 3, H, W], one after another: [N x groups, 9, H, W]. The last frame is repeated
/// up to a whole one.
at::Tensor grouped_frames(const at::Tensor& frames);
/// Back, without what was repeated.
at::Tensor ungrouped_frames(const at::Tensor& groups, std::int64_t clips, std::int64_t frames);

}  // namespace tj::trainer
