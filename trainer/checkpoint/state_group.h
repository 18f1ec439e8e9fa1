// The state of a run as checkpoints see it: named groups of named tensors that can be
// copied out. Torch-free: training_state.h makes it of torch's tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {

struct StateTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  /// Copies all bytes (row-major). Called on any thread while the state is at rest.
  std::function<void(std::span<std::byte>)> copy_to;
  /// Set where ranks hold parts that the writer gathers. Then copy_to() is the writer's half of a
  /// collective, this is that of every other rank, and both are called where collectives are.
  std::function<void(int writer)> send_to = {};
  /// The only rank that has it, and so writes it; elsewhere it can't be copied. None: all have it.
  std::optional<int> holder = {};
  std::string dtype = kFloat32;  // in the words of safetensors

  std::size_t bytes() const {
    return element_bytes(dtype) * static_cast<std::size_t>(element_count(shape));
  }
};

/// One set of files: `stem`.safetensors, or several of that name and an index.
struct StateGroup {
  std::string stem;  // "model", "optimizer", "ema", "training", "memory", "reduction"
  std::vector<StateTensor> tensors;
};

}  // namespace tj::trainer
