// What a checkpoint holds of a run: named groups of named tensors. Adding a tensor to the state is
// adding it here; nothing else in saving or resuming knows what the tensors mean. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/device_to_host.h"
#include "trainer/checkpoint/state_group.h"
#include "trainer/comm/communicator.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;                // contiguous; shares its memory with the run. float32, but in
                                    // `memory` uint8
  std::vector<std::int64_t> shape;  // of the whole
  /// By rank, which elements of the whole `tensor` is, flat; it may be undefined where there are
  /// none. Empty: it is the whole, on all ranks.
  std::vector<ElementRange> parts = {};
  /// Of one in parts: so many ranks in a row have all of it together, and the next ones the same
  /// once more. Absent: all ranks have it once.
  std::optional<int> ranks_of_a_copy = {};
  /// Of one in parts: the whole, where each rank has it between two steps all the same.
  at::Tensor whole = {};
};

struct StateTensors {
  std::vector<NamedTensor> model;      // with Hugging Face's names
  std::vector<NamedTensor> optimizer;  // moments: exp_avg.NAME, exp_avg_sq.NAME; read by us alone
  std::vector<NamedTensor> ema;        // with the names of the model; empty: none is kept
  std::vector<NamedTensor> training;   // weights and buffers that only the training needs
  std::vector<NamedTensor> memory;     // of bytes, whole on all ranks; at most one
  std::vector<NamedTensor> sync;       // what a way to synchronise holds back, on all ranks
  std::vector<NamedTensor> ranks;      // where they differ: the moments of each rank
  std::vector<NamedTensor> round;      // and its weights
  /// Of a compressed reduction: error.NAME [ranks, elements], a row of each rank, and factor.NAME,
  /// whole on all ranks.
  std::vector<NamedTensor> reduction;
};

/// "exp_avg.NAME": what of each rank is whole and its own, as one tensor of all ranks.
void append_own(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                const std::vector<at::Tensor>& tensors, const std::string& prefix,
                const Communicator& communicator);
/// Of tensors that each rank has and that may differ: those of rank 0.
void append_of_first(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                     const std::vector<at::Tensor>& tensors, const std::string& prefix,
                     const Communicator& communicator);

/// Appends all of `tensors` under `prefix` + name; both lists are in the same order.
void append_tensors(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                    const std::vector<at::Tensor>& tensors, const std::string& prefix = "");

/// The groups of a checkpoint, as the machinery of saving reads them. With `all_write` each rank
/// writes the slices of the moments that it has; what others read (weights, averages) is gathered.
/// `copies` outlives them; null for tensors of the CPU.
std::vector<StateGroup> state_groups(const StateTensors& state, Communicator& communicator,
                                     bool all_write, DeviceToHost* copies);

/// Collective. Fills `tensors` on all ranks by what the first `readers` ranks read with `read`,
/// beside each other; the others give no `read`. Where all read, each reads its own part of a
/// tensor in parts; any other tensor is read by one rank, which hands it out. The first failure of
/// this rank's `read`: the others don't know of it.
Result<void> fill(Communicator& communicator, const std::vector<NamedTensor>& tensors,
                  const TensorReader& read, int readers);

/// Collective. Fills a tensor of bytes on all ranks by what rank 0 reads from `file`. The failure
/// of rank 0: the others don't know of it.
Result<void> fill_bytes(Communicator& communicator, const NamedTensor& named,
                        const std::filesystem::path& file);

}  // namespace tj::trainer
