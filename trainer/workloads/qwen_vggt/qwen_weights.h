// Weights of a Qwen2.5-VL from the files of others: a folder as Hugging Face has it, or a
// checkpoint of ours. No torch.
#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/workload/tensor_spec.h"
#include "trainer/workloads/qwen_vggt/qwen_config.h"

namespace tj::trainer {

/// The published name of a tensor; newer versions of transformers call "visual." "model.visual.",
/// and "model." "model.language_model.".
std::string published_qwen_name(std::string name);

/// Reads config.json of `folder`. Fails with Code::invalid, and names the file.
Result<QwenConfig> read_qwen_config(const std::filesystem::path& folder);

/// Of a model of tensors `specs` (qwen_tensors()), from a folder with model.safetensors or shards
/// and their index, or one .safetensors file. Of a tied head lm_head is passed over, or taken where
/// the embedding is absent. What the reader reads is float32. Fails with Code::invalid for a file
/// that can't be read or is missing, and for tensors that are missing, too many, there twice or of
/// another shape: each is named. Tensors of a VGGT ("vggt.") are passed over, and those of a
/// coupling ("merger.") where `specs` have none.
Result<TensorReader> open_qwen_weights(const std::filesystem::path& path,
                                       std::span<const TensorSpec> specs);

/// Whether such files hold tensors of a coupling with VGGT. Fails as open_qwen_weights().
Result<bool> has_coupling(const std::filesystem::path& path);

}  // namespace tj::trainer
