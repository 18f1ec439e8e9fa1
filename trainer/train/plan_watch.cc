#include "trainer/train/plan_watch.h"

#include <filesystem>

#include "trainer/process/lines.h"
#include "trainer/train/link_probe.h"
#include "trainer/train/plan_request.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
PlanWatch::PlanWatch(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                     const PhaseClock& clock)
    : plan_(plan), comm_(communicator), clock_(clock) {
  const bool overlaps = plan.zero.stage == 0 && plan.logical_shards == 0;
  if (comm_.world_size() == 1 || !overlaps) return;
  auto inputs = forecast_inputs({.ranks = comm_.world_size()}, plan, workload);
  inputs.step.gradients = std::move(inputs.gradients);
  check_.emplace(std::move(inputs.step));
}

void PlanWatch::begin(std::int64_t steps_left) {
  if (steps_left < PlanCheck::kStepsMin) check_.reset();
  before_ = clock_.seen();
}

SeenStep PlanWatch::seen(const Step& step) {
  const auto now = clock_.seen();
  const auto saved = [](const Seen& of) {
    return of.step_section_seconds[static_cast<std::size_t>(Section::save)];
  };
  return {.step_s = step.seconds,
          .forward_s = now.forward_seconds - before_.forward_seconds,
          .update_s = step.update_s,
          .waited_s = now.collective_seconds - before_.collective_seconds,
          .other_s = now.data_seconds - before_.data_seconds + saved(now) - saved(before_)};
}

void PlanWatch::step_done(const Step& step) {
  if (!check_) return;
  check_->add(seen(step));
  if (check_->wants_link()) check_->set_link(quick_link(comm_, device_of(plan_.gpu)));
  before_ = clock_.seen();
  const auto verdict = check_->verdict();
  if (!verdict) return;
  check_.reset();
  if (comm_.rank() != 0) return;
  say(verdict->line());
  // The next step's line finds a full disk, too, and ends the run.
  (void)append_line(std::filesystem::path(plan_.out) / "metrics.jsonl", verdict->json(step.number));
}

}  // namespace tj::trainer
