// TAEHV as a model: video to latents and back, a whole clip at once or frame by frame. Includes
// torch.
//
// Shapes: N clips, T frames, C channels, H x W pixels; frames are [N, T, 3, H, W] in [0, 1],
// latents [N, T / 4, C, H / 8, W / 8] (the divisors depend on the variant).
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/workload/model.h"
#include "trainer/workloads/taehv/adversary.h"
#include "trainer/workloads/taehv/taehv_config.h"

namespace tj::trainer {

/// The loss of one value is squared x error^2 + absolute x |error|. What is added to their mean is
/// a mean itself, over all clips of a step.
struct TaehvLoss {
  double squared = 1;
  double absolute = 0;
  double latent = 0;       // of the squared difference from the teacher's latents; 0: there is none
  double adversarial = 0;  // of that from corrected frames; 0: there is no discriminator

  /// How many sums a pass tells.
  std::size_t metric_sums() const {
    return 2 + std::size_t{latent > 0} + std::size_t{adversarial > 0};
  }
};

/// All tensors of a model that is trained with this loss: those of the autoencoder, then those of
/// the discriminator.
std::vector<TensorSpec> tensors_of(const TaehvConfig& config, const TaehvLoss& loss);
/// The pieces of both, in their order: the discriminator is one.
std::vector<ModelBlock> blocks_of(const TaehvConfig& config, const TaehvLoss& loss);

class Taehv final : public Model {
 public:
  /// With a discriminator the keeper has a memory, of rows of its ReplayShape.
  Taehv(const TaehvConfig& config, const TaehvLoss& loss, const ModelOptions& options,
        const ModelKeeper& keeper = {});

  /// The batch is uint8 [N, T, 3, H, W], T a multiple of frames_of_latent() and H and W of
  /// pixels_of_latent(), and where there is a teacher its latents of the clips, float32. The first
  /// frames_to_trim() frames are not reconstructed, and don't count. Metrics: the sum of the
  /// squared errors of what a viewer sees; without a `first_sample` the SSIM of each clip, times
  /// its number of values; and with one the squared difference from the teacher and the
  /// discriminator's loss, alike.
  PassSums pass(const Batch& batch, std::optional<std::int64_t> first_sample) const override;

  /// Frames are repeated at the end up to a multiple of frames_of_latent().
  at::Tensor encode(const at::Tensor& frames) const;
  /// Clamped to [0, 1], without the first frames_to_trim() frames.
  at::Tensor decode(const at::Tensor& latents) const;

  /// Rows of clips: the middle frame as it is, as it is reconstructed, and four times the error.
  at::Tensor picture(const Batch& batch) const override;

  const std::vector<at::Tensor>& tensors() const override { return tensors_; }

 private:
  friend class TaehvStream;
  struct Made {
    at::Tensor latents;
    at::Tensor frames;  // not clamped
  };
  Made reconstructed(const at::Tensor& frames) const;
  /// Of a pass in training: adds to its loss, and tells one sum more.
  void learn_from_teacher(const Batch& batch, const Made& made, PassSums& sums) const;
  void learn_from_adversary(const SeenClips& clips, std::int64_t first_sample,
                            PassSums& sums) const;
  at::Tensor apply(std::span<const TaehvLayer> layers, at::Tensor x, std::int64_t clips) const;
  at::Tensor apply_pieces(const std::vector<TaehvLayer>& layers, const TaehvPieces& pieces,
                          std::size_t first_block, at::Tensor x, std::int64_t clips) const;
  at::Tensor apply_one(const TaehvLayer& layer, const at::Tensor& x, const at::Tensor& past) const;
  at::Tensor end_memory(const TaehvLayer& layer, const at::Tensor& x, at::Tensor added) const;

  TaehvConfig config_;
  TaehvLoss loss_;
  ModelOptions options_;
  BlockHooks* hooks_;  // null: there are none
  TaehvLayers layers_;
  std::vector<at::Tensor> tensors_;
  std::optional<Adversary> adversary_;
};

/// One side of a model, frame by frame, in memory that does not grow with the video.
class TaehvStream {
 public:
  enum class Side { encoder, decoder };
  /// The model outlives it.
  TaehvStream(const Taehv& model, Side side);
  /// Takes a frame [N, 3, H, W], or a latent [N, C, H, W]; gives what can be made by now: latents,
  /// or clamped frames.
  std::vector<at::Tensor> push(const at::Tensor& input);
  /// Of the encoder: repeats the last frame until its latent is complete.
  std::vector<at::Tensor> finish();

 private:
  void feed(std::size_t layer, at::Tensor x, std::vector<at::Tensor>& made);

  const Taehv& model_;
  const Side side_;
  const std::vector<TaehvLayer>& layers_;
  std::vector<std::vector<at::Tensor>> kept_;  // of each layer: its past, or what it pools
  at::Tensor last_;
  std::int64_t taken_ = 0;
  std::int64_t to_trim_ = 0;
};

}  // namespace tj::trainer
