// A name for --model, and how such a model is usually trained.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "trainer/workload/precision.h"

namespace tj::trainer {

/// How a model is trained on so many GPUs.
struct GpuConfig {
  std::string_view name;        // for --config
  int ranks = 1;                // GPUs of all nodes together, a rank for each
  std::int64_t batch_size = 0;  // samples in one optimizer step, over all ranks
  std::int64_t accumulation = 1;
  double lr = 0;
  Precision precision = Precision::bf16;  // on a GPU
  int data_threads = 1;
};

/// Every value can be overridden by a flag.
struct Preset {
  std::string_view name;
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;  // samples in one optimizer step, over all ranks
  double lr = 0;
  /// Where there are some, --config is auto: on other numbers of ranks one is derived from them.
  std::span<const GpuConfig> configs = {};
};

}  // namespace tj::trainer
