// The state of a run as checkpoints see it: named groups of named float32 tensors that can be
// copied out. Torch-free: training_state.h makes it of torch's tensors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tj::trainer {

struct StateTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  /// Copies all bytes (float32, row-major). Called on any thread while the state is at rest.
  std::function<void(std::span<std::byte>)> copy_to;
  /// Set where ranks hold parts of the tensor. Then copy_to() is the writer's half of a collective,
  /// this is that of every other rank, and both are called where collectives are.
  std::function<void(int writer)> send_to = {};

  std::size_t bytes() const {
    std::size_t count = sizeof(float);
    for (const auto extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
  }
};

/// One set of files: `stem`.safetensors, or shards of that name and an index.
struct StateGroup {
  std::string stem;  // "model", "optimizer", "ema"
  std::vector<StateTensor> tensors;
};

}  // namespace tj::trainer
