// The part of a batch script that is the same in all: how a run begins, is watched, stopped and put
// back into the queue. It stands behind the variables and functions that batch_script.cc writes.
#pragma once
#include <string_view>

namespace tj::slurm {

extern const std::string_view kBatchBody;

}  // namespace tj::slurm
