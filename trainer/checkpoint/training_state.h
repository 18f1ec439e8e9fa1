// What a checkpoint holds of a run: named groups of named tensors. Adding a tensor to the state is
// adding it here; nothing else in saving or resuming knows what the tensors mean. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/folder.h"

namespace tj::trainer {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;  // float32, contiguous; shares its memory with the run
};

struct StateTensors {
  std::vector<NamedTensor> model;      // with Hugging Face's names
  std::vector<NamedTensor> optimizer;  // moments: exp_avg.NAME, exp_avg_sq.NAME
  std::vector<NamedTensor> ema;        // with the names of the model; empty: none is kept
};

/// Appends all of `tensors` under `prefix` + name; both lists are in the same order.
void append_tensors(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                    const std::vector<at::Tensor>& tensors, const std::string& prefix = "");

/// `manifest` without its files; they are filled in. Returns the path of the checkpoint.
Result<std::filesystem::path> save_checkpoint(const std::filesystem::path& out,
                                              const StateTensors& state, Manifest manifest);

/// Fails with Code::invalid when a tensor is missing or of another shape.
Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const StateTensors& state);

}  // namespace tj::trainer
