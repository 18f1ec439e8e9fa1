// Which tensors of a model a run trains: all that the workload says, but for what --freeze matches;
// or, with --lora, adapters. Pure.
#pragma once
#include <span>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/model_shape.h"
#include "trainer/train/plan.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/lora_tensors.h"

namespace tj::trainer {

/// Reads --freeze and --lora with all that belongs to it.
void read_tuning(FlagReader& reader, TrainPlan& plan);

/// Once the model is known: writes rows of the table. Fails with Code::invalid for patterns that
/// match nothing, or leave nothing to train.
Result<void> settle_tuning(TrainPlan& plan, const Workload& workload);

// All that follows needs settle_tuning().

/// The workload's tensors, some of them frozen; then those of adapters.
std::vector<TensorSpec> tensors_of(const TrainPlan& plan, const Workload& workload);
/// The workload's blocks, with the adapters in them.
std::vector<ModelBlock> blocks_of(const TrainPlan& plan, const Workload& workload);
std::vector<LoraTarget> lora_targets_of(const TrainPlan& plan, const Workload& workload);
/// By what a checkpoint is known to be of this training: the workload's shape, and what is trained.
ModelShape shape_of(const TrainPlan& plan, const Workload& workload);

}  // namespace tj::trainer
