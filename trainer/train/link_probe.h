// Times an all-reduce between the ranks, for the planner. Includes torch.
#pragma once
#include <c10/core/Device.h>

#include <cstdint>

#include "trainer/comm/communicator.h"
#include "trainer/predict/traffic.h"

namespace tj::trainer {

struct AllReduceCost {
  double seconds = 0;
  double cpu_s = 0;  // of this process
};

/// Collective: of rank 0, on all ranks. Throws what the communicator throws.
AllReduceCost timed_all_reduce(Communicator& communicator, std::int64_t bytes, c10::Device device);

/// Collective: latency by empty ones, rate by one of at most a bucket, within a second.
Link quick_link(Communicator& communicator, c10::Device device);

}  // namespace tj::trainer
