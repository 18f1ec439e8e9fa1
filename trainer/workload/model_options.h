// How a model is to be made.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "trainer/workload/block_hooks.h"
#include "trainer/workload/precision.h"

namespace tj::trainer {

/// How the passes are computed. The weights are float32, unless they are kept elsewhere.
struct ModelOptions {
  std::uint64_t seed = 0;  // of the initial weights, and of all that is drawn in a pass
  Precision precision = Precision::fp32;  // of matrix products and attention
  bool recompute = false;  // keep a block's input alone, and run it again in backward
  std::optional<int> gpu;  // CUDA's index of the device that holds the weights; absent: the CPU
};

class Communicator;  // comm/communicator.h
class StepMemory;    // step_memory.h

/// What the engine keeps for a model: its weights, where they are not simply its own, and what it
/// remembers.
struct ModelKeeper {
  /// Takes the initial value of tensor `index`, and returns the tensor to compute with: of its
  /// shape, float32 or the precision of the passes.
  std::function<at::Tensor(std::size_t index, const at::Tensor& initial)> place;
  BlockHooks* hooks = nullptr;         // of the workload's blocks(); outlives the model
  const StepMemory* memory = nullptr;  // of the workload's memory(); outlives the model
  /// All ranks of the training, for what a model shares out among them by itself: in its passes,
  /// which each rank makes as often, at places that all of them reach. Null: there are no others.
  Communicator* ranks = nullptr;
};

}  // namespace tj::trainer
