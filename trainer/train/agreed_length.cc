#include "trainer/train/agreed_length.h"

#include <string>

#include "trainer/comm/agreement.h"

namespace tj::trainer {
namespace {

Failure steps_differ(const TrainPlan& plan, const std::string& of_rank_0) {
  const std::string why =
      plan.epochs > 0 ? ": --epochs counts the samples of --data, which must be the same everywhere"
                      : ": --steps must be the same everywhere";
  return {.exit_code = exit_code::kBadConfig,
          .reason = "StepsDiffer",
          .message = "the run has " + grouped(plan.schedule.steps) + " steps here, and " +
                     of_rank_0 + " on rank 0" + why};
}

}  // namespace

std::optional<Failure> agree_on_length(Communicator& communicator, const TrainPlan& plan) {
  const std::string mine = grouped(plan.schedule.steps);
  const std::string of_rank_0 = shared_text(communicator, mine, 0);
  std::optional<Failure> failure;
  if (mine != of_rank_0) failure = steps_differ(plan, of_rank_0);
  return agree(communicator, failure);
}

}  // namespace tj::trainer
