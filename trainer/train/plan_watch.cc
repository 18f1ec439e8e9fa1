#include "trainer/train/plan_watch.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "trainer/comm/agreement.h"
#include "trainer/process/lines.h"
#include "trainer/train/plan_request.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

constexpr std::int64_t kProbeBytes = 1 << 20;  // tells how large the real one may be
constexpr double kSecondsMax = 0.5;            // of the real one
constexpr int kHops = 4;                       // of which the fastest counts

/// Collective: of rank 0, on all ranks.
double timed_all_reduce(Communicator& communicator, std::int64_t bytes, at::Device device) {
  auto tensor = torch::zeros({std::max<std::int64_t>(1, bytes / 4)},
                             at::TensorOptions().dtype(at::kFloat).device(device));
  sum_over_ranks(communicator, {0.0});  // all are here
  const auto begun = steady_clock::now();
  communicator.all_reduce_sum(tensor);
  tensor[0].item<float>();  // on a GPU the call only queues
  const double mine = std::chrono::duration<double>(steady_clock::now() - begun).count();
  return sum_over_ranks(communicator, {communicator.rank() == 0 ? mine : 0.0}).front();
}

}  // namespace

PlanWatch::PlanWatch(const TrainPlan& plan, const Workload& workload, Communicator& communicator,
                     const PhaseClock& clock)
    : plan_(plan), comm_(communicator), clock_(clock) {
  const bool overlaps =
      plan.zero.stage == 0 && plan.logical_shards == 0 && plan.sync.kind == SyncKind::step;
  if (comm_.world_size() == 1 || !overlaps) return;
  auto inputs = forecast_inputs(
      {.ranks = comm_.world_size(), .codec = plan.reduce.codec, .powersgd_rank = plan.reduce.rank},
      plan, workload);
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

Link PlanWatch::measured_link() const {
  const auto device = device_of(plan_.gpu);
  double hops_s = timed_all_reduce(comm_, 4, device);
  for (int turn = 1; turn < kHops; ++turn)
    hops_s = std::min(hops_s, timed_all_reduce(comm_, 4, device));
  const double probe_s = timed_all_reduce(comm_, kProbeBytes, device);
  const double share =
      std::min(1.0, kSecondsMax * kProbeBytes /
                        (std::max(probe_s, 1e-9) * static_cast<double>(kGradientBucketBytes)));
  const auto bytes = std::max(
      kProbeBytes, static_cast<std::int64_t>(share * static_cast<double>(kGradientBucketBytes)));
  const double all_s = timed_all_reduce(comm_, bytes, device);
  const int ranks = comm_.world_size();
  return {.bytes_per_second =
              ring_bytes(static_cast<double>(bytes), ranks) / std::max(all_s - hops_s, 0.1 * all_s),
          .latency_s = hops_s / (2.0 * (ranks - 1))};
}

void PlanWatch::step_done(const Step& step) {
  if (!check_) return;
  check_->add(seen(step));
  if (check_->wants_link()) check_->set_link(measured_link());
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
