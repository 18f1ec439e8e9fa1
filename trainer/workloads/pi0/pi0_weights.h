// Weights of a pi0 or pi05 that --init-from names: a checkpoint of openpi's PyTorch, of LeRobot or
// of ours, a folder or one .safetensors file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/workload/tensor_spec.h"
#include "trainer/workloads/pi0/pi0_config.h"

namespace tj::trainer {

/// What the shapes of the tensors say of a model; its towers are the preset's.
struct Pi0Sizes {
  Pi0Config::Kind kind = Pi0Config::Kind::pi0;
  std::int64_t vocabulary = 0;
  std::int64_t state_width = 0;  // 0: a pi05, which has no tensor of it
  std::int64_t action_width = 0;
  std::int64_t tokens_of_image = 0;
};

/// Reads headers only. Fails with Code::invalid for a file that can't be read or is of no pi0.
Result<Pi0Sizes> read_pi0_sizes(const std::filesystem::path& path);

/// Of a model of tensors `specs` (pi0_tensors()). LeRobot's names begin with "model.", openpi's
/// don't; those of newer versions of transformers lack "vision_model.". Where the embedding of the
/// tokens is absent its twin, lm_head, is taken; the expert's own head, which nothing uses, is
/// passed over. What the reader reads is float32. Fails with Code::invalid for a file that can't be
/// read, and for tensors that are missing, too many, or of another shape.
Result<TensorReader> open_pi0_weights(const std::filesystem::path& path,
                                      std::span<const TensorSpec> specs);

}  // namespace tj::trainer
