// Scores, patch by patch, how much groups of frames look as if the decoder had made them: a stack
// of convolutions that also sees the latents, and says its opinion behind each of them. Shapes as
// those of seraena.py (github.com/madebyollin/seraena). Includes torch.
//
// Shapes: n groups, of three frames of 3 channels each: [n, 9, H, W] in [0, 1]; context, their
// latents, [n, C, h, w].
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/workload/tensor_spec.h"
#include "trainer/workloads/taehv/taehv_config.h"

namespace tj::trainer {

inline constexpr std::int64_t kFramesOfGroup = 3;
inline constexpr std::size_t kDiscriminatorStages = 6;

/// Its tensors, none of which is published: of each stage the convolution and the normalisation
/// with its running mean and variance, then what makes a score of each. As wide as the encoder at
/// first, then 2, 4 and 8 times that: 7,491,456 weights beside an autoencoder of the usual width
/// with 16 channels of latents.
std::vector<TensorSpec> discriminator_tensors(const TaehvConfig& config);

/// Multiplications and additions of one forward pass over one group.
double flops_of_discriminator(const TaehvConfig& config, std::int64_t height, std::int64_t width);

class Discriminator {
 public:
  /// In the order of discriminator_tensors().
  explicit Discriminator(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}

  /// Float32 [n, stages, H / 8, W / 8], which it is to learn to be 1 for what was made and -1 for
  /// what is real. Normalises by the mean and variance of this batch, and moves the running ones.
  at::Tensor scores_in_training(const at::Tensor& groups, const at::Tensor& context) const;
  /// By the running mean and variance, with weights that get no gradient of it.
  at::Tensor scores(const at::Tensor& groups, const at::Tensor& context) const;

 private:
  at::Tensor apply(const std::vector<at::Tensor>& tensors, const at::Tensor& groups,
                   const at::Tensor& context, bool is_training) const;
  std::vector<at::Tensor> tensors_;
};

}  // namespace tj::trainer
