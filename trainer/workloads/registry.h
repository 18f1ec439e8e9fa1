// All systems that `trainer train` knows.
#pragma once
#include "trainer/workload/workload.h"

namespace tj::trainer {

Registry workloads();

}  // namespace tj::trainer
