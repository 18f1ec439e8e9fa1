// What a checkpoint holds of a run: named groups of named tensors. Adding a tensor to the state is
// adding it here; nothing else in saving or resuming knows what the tensors mean. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/state_group.h"

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

/// The groups of a checkpoint, as the machinery of saving reads them.
std::vector<StateGroup> state_groups(const StateTensors& state);

/// Reads all tensors of `state`, from however many files. Fails with Code::invalid when one is
/// missing or of another shape.
Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const StateTensors& state);

/// Calls `read` with the places of `tensors` in this host's memory; what it has read is then in the
/// tensors, wherever they lie. Returns what `read` returns.
Result<void> fill(const std::vector<NamedTensor>& tensors,
                  const std::function<Result<void>(std::span<const TensorTarget>)>& read);

}  // namespace tj::trainer
