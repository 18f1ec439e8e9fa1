// Holds a run to what the planner would have said of it: one line after its 60th step. Includes
// torch.
#pragma once
#include <cstdint>
#include <optional>

#include "trainer/comm/communicator.h"
#include "trainer/predict/plan_check.h"
#include "trainer/train/plan.h"
#include "trainer/watch/phase_clock.h"
#include "trainer/workload/workload.h"

namespace tj::trainer {

class PlanWatch {
 public:
  /// Watches only what the planner knows well: several ranks that reduce gradients while backward
  /// runs, for long enough. All but `workload` outlive it.
  PlanWatch(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
            const PhaseClock& clock);

  /// `steps_left` of the run, the same on all ranks.
  void begin(std::int64_t steps_left);

  struct Step {
    std::int64_t number = 0;
    double seconds = 0;
    double update_s = 0;  // without waits
  };
  /// Each step of the run; collective after one of them, where the link is measured. Rank 0 says
  /// the line and writes the event.
  void step_done(const Step& step);

 private:
  SeenStep seen(const Step& step);
  Link measured_link() const;

  const TrainPlan& plan_;
  Communicator& comm_;
  const PhaseClock& clock_;
  std::optional<PlanCheck> check_;
  Seen before_;
};

}  // namespace tj::trainer
