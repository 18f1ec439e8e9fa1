// How many samples, passes and threads a run has on so many ranks, and how fast it learns, where no
// flag says so: by --config, which takes a configuration of the preset, derives one from it, or
// leaves the preset as it is. Pure.
#pragma once
#include <string>

#include "contract/result.h"
#include "trainer/values/settings.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/precision.h"
#include "trainer/workload/preset.h"

namespace tj::trainer {

struct RunConfig {
  Setting row;  // of the start-up table
  Otherwise batch_size;
  Otherwise accumulation;
  Otherwise lr;
  Otherwise data_threads;
  Precision gpu_precision = Precision::bf16;
  std::string gpu_precision_origin;
};

/// By the text of --config: "auto", "none" or the name of one; without it auto where the preset has
/// configurations. Of so many ranks that none was made for, the nearest smaller one is taken: its
/// batch is kept, raised to the next multiple of ranks x accumulation, a pass has no more samples
/// than with it, and the learning rate follows the square root of the batch. A flag
/// --accumulation counts in this, all other flags are left to the reader. Fails with Code::invalid
/// for any other text.
Result<RunConfig> choose_config(const Preset& preset, const Flags& flags, int world_size);

}  // namespace tj::trainer
