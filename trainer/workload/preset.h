// A name for --model, and how such a model is usually trained.
#pragma once
#include <cstdint>
#include <string_view>

namespace tj::trainer {

/// Every value can be overridden by a flag.
struct Preset {
  std::string_view name;
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;  // samples in one optimizer step, over all ranks
  double lr = 0;
};

}  // namespace tj::trainer
