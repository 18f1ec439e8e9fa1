#include "operator/loop/gauges.h"

#include <algorithm>

#include "operator/plan/plan.h"

namespace tj {

Gauges count_gauges(const View& view, TimePoint now) {
  Gauges gauges;
  for (const Phase phase : {Phase::pending, Phase::starting, Phase::running, Phase::restarting,
                            Phase::suspended, Phase::succeeded, Phase::failed}) {
    gauges.jobs_by_phase[phase] = 0;
  }
  for (const auto& [key, job] : view.jobs().objects()) {
    if (!is_managed_elsewhere(job)) ++gauges.jobs_by_phase[job.status.phase];
  }
  gauges.cached_objects = {{Resource::training_jobs, view.jobs().objects().size()},
                           {Resource::pods, view.pods().objects().size()},
                           {Resource::services, view.services().objects().size()},
                           {Resource::nodes, view.nodes().objects().size()}};
  const auto& pods = view.pods().objects();
  // A deletion's time is when the grace that was given is over.
  gauges.stuck_terminating =
      static_cast<std::size_t>(std::count_if(pods.begin(), pods.end(), [&](const auto& entry) {
        const auto end = meta_of(entry.second).deletion_time;
        return end && now > *end + kStuckAfter;
      }));
  return gauges;
}

}  // namespace tj
