// How long a run is: --steps, or --epochs, passes over the data that are counted in steps once the
// data is open. The default of the warm-up follows. Pure.
#pragma once
#include <cstdint>

#include "contract/result.h"
#include "trainer/train/plan.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/preset.h"

namespace tj::trainer {

/// Steps of `batch_size` samples in which each of `sample_count` samples comes `epochs` times: the
/// last one is filled up from the next epoch. At least 1. Needs sample_count >= 1. Fails with
/// Code::invalid for more steps than can be counted.
Result<std::int64_t> steps_of_epochs(double epochs, std::int64_t sample_count,
                                     std::int64_t batch_size);

/// One of both flags may be given. With --epochs the plan has no steps until settle_length().
void read_length(FlagReader& reader, const Preset& preset, TrainPlan& plan);
void read_warmup(FlagReader& reader, TrainPlan& plan);

/// Completes a plan that counts in epochs, and its rows of the table; leaves any other as it is.
/// Fails as steps_of_epochs().
Result<void> settle_length(TrainPlan& plan, std::int64_t sample_count);

}  // namespace tj::trainer
