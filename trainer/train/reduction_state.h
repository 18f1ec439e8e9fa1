// What a compressed reduction goes on with after a checkpoint: the errors of as many ranks, or
// their sum in equal shares; and PowerSGD's factors, where they are of the same rank. Includes
// torch.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/communicator.h"
#include "trainer/values/failure.h"
#include "trainer/values/reduction_mark.h"

namespace tj::trainer {

/// Collective: fills tensors of one group of a checkpoint.
using GroupFiller = std::function<std::optional<Failure>(const std::vector<NamedTensor>&)>;

/// Collective: fills `reduction` as far as the checkpoint has what it asks for; `mark` says what.
/// The rest begins afresh. Rank 0 says what of the checkpoint is left out.
std::optional<Failure> load_reduction(Communicator& communicator, const ReductionMark& mark,
                                      const ReduceOptions& options,
                                      const std::vector<NamedTensor>& reduction,
                                      const GroupFiller& fill_tensors);

}  // namespace tj::trainer
