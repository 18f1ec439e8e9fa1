// A memory of a model (step_memory.h), before it is there.
#pragma once
#include <cstdint>
#include <string>

namespace tj::trainer {

struct MemorySpec {
  std::string name;  // in checkpoints
  std::int64_t rows = 0;
  std::int64_t row_bytes = 0;
  bool operator==(const MemorySpec&) const = default;
};

}  // namespace tj::trainer
