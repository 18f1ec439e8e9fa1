#include "trainer/train/loop.h"

#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/report/progress.h"
#include "trainer/train/device_memory.h"
#include "trainer/train/evaluation.h"
#include "trainer/train/learner.h"
#include "trainer/train/pass_reader.h"
#include "trainer/train/plan_watch.h"
#include "trainer/train/resume.h"
#include "trainer/train/saving.h"
#include "trainer/train/stop_vote.h"
#include "trainer/train/sync_mark.h"
#include "trainer/train/tuning.h"
#include "trainer/train/zero/zero_report.h"
#include "trainer/watch/event_timer.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

constexpr double kLossScaleMin = 1.0 / 1024;  // below it fp16 can't hold the gradients at all

std::optional<std::chrono::milliseconds> save_limit(const Limits& limits) {
  const auto seconds = limit_of(limits, Phase::save);
  if (!seconds) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(*seconds));
}

std::vector<Metric> metrics_of_steps(const Workload& workload) {
  auto metrics = workload.metrics();
  std::erase_if(metrics, [](const Metric& metric) { return metric.is_of_evaluations; });
  return metrics;
}

/// The sections of the clock are timed by the GPU that works on them, if there is one.
class TimedByDevice {
 public:
  TimedByDevice(std::optional<int> gpu, PhaseClock& clock) : clock_(clock) {
    if (gpu) clock_.time_by(&timer_.emplace(device_of(gpu)));
  }
  TimedByDevice(const TimedByDevice&) = delete;
  TimedByDevice& operator=(const TimedByDevice&) = delete;
  ~TimedByDevice() { clock_.time_by(nullptr); }

 private:
  PhaseClock& clock_;
  std::optional<EventTimer> timer_;
};

class Loop {
 public:
  explicit Loop(const LoopInputs& inputs)
      : plan_(inputs.plan),
        source_(inputs.source),
        eval_source_(inputs.eval_source),
        comm_(inputs.communicator),
        sharing_(inputs.sharing),
        claim_(inputs.claim),
        clock_(inputs.clock),
        reporter_(inputs.reporter),
        workload_(inputs.workload),
        words_(workload_.words()),
        metrics_(metrics_of_steps(workload_)),
        timed_(plan_.gpu, clock_),
        learner_(plan_, workload_, comm_, clock_),
        plan_watch_(plan_, workload_, comm_, clock_) {}

  LoopEnd run() {
    try {
      auto failure = begin();
      if (!failure) failure = step_until_end();
      return {.failure = failure, .last_step = step_};
    } catch (const PeerLostError& lost) {
      return {.failure = peer_lost(lost), .last_step = step_, .is_agreed = false};
    } catch (const BadDataError& bad) {
      return {.failure = bad_data(bad), .last_step = step_, .is_agreed = false};
    }
  }

 private:
  bool is_first() const { return comm_.rank() == 0; }

  std::optional<Failure> begin() {
    const auto beginning = begin_from_checkpoint({.plan = plan_,
                                                  .workload = workload_,
                                                  .communicator = comm_,
                                                  .claim = claim_,
                                                  .is_shared = sharing_.is_shared,
                                                  .clock = clock_,
                                                  .data = source_.mark()},
                                                 learner_.state());
    if (beginning.failure) return beginning.failure;
    std::optional<std::int64_t> begun_at;
    if (beginning.manifest) begun_at = go_on_from(*beginning.manifest);
    checkpoint_path_ = beginning.checkpoint_path;
    saving_.emplace(comm_,
                    SavingOptions{.out = plan_.out,
                                  .config_json = workload_.config_json(),
                                  .more_files = workload_.files(),
                                  .retention = {.keep = plan_.keep, .keep_every = plan_.keep_every},
                                  .begun_at = begun_at,
                                  .claim = claim_,
                                  .run_id = sharing_.run_id,
                                  .is_shared = sharing_.is_shared,
                                  .saves_midway = plan_.save_every > 0,
                                  .others_max = save_limit(plan_.limits),
                                  .clock = clock_,
                                  .reporter = reporter_},
                    learner_.state());
    learner_.begin(beginning.read);
    reporter_.training_begins(step_, checkpoint_path_);
    for (const auto& aside : beginning.set_aside) reporter_.set_aside(aside);
    return std::nullopt;
  }

  /// All that a checkpoint holds beside the tensors.
  Manifest place() {
    return {.step = step_,
            .next_sample = next_sample_,
            .optimizer_steps = learner_.optimizer_steps(),
            .loss_scale = learner_.loss_scale(),
            .seed = plan_.seed,
            .data = source_.mark(),
            .loss = loss_,
            .model = shape_of(plan_, workload_),
            .numerics = numerics_of(plan_),
            .memory_rows = learner_.remembered_rows(),
            .sync = sync_mark_of(plan_.sync, comm_.world_size()),
            .reduction = learner_.reduction(),
            .files = {}};
  }

  /// Its step.
  std::int64_t go_on_from(const Manifest& manifest) {
    step_ = saved_step_ = manifest.step;
    next_sample_ = manifest.next_sample;
    loss_ = manifest.loss;
    learner_.set_optimizer_steps(manifest.optimizer_steps);
    learner_.loss_scale() = manifest.loss_scale;
    learner_.set_remembered_rows(manifest.memory_rows);
    learner_.go_on_reducing(manifest.reduction, manifest.step);
    return step_;
  }

  std::optional<Failure> step_until_end() {
    const std::int64_t steps = plan_.schedule.steps;
    if (step_ >= steps)
      return finish("nothing to do: " + std::to_string(step_) + " of " + std::to_string(steps) +
                    " steps are done");
    passes_.emplace(source_, plan_, comm_.rank(), next_sample_, clock_);
    plan_watch_.begin(steps - step_);
    while (step_ < steps) {
      const auto begun = steady_clock::now();
      const auto went = train_step();
      clock_.enter(Phase::step);  // the first step is part of the start
      if (went == StepEnd::save_failed) return failed_save();
      if (went == StepEnd::stopped) {
        if (auto failure = save()) return failure;
        break;
      }
      if (auto failure = not_finite()) {
        const auto unsaved = finish_saving();  // what is being saved is not lost
        return unsaved ? unsaved : failure;
      }
      const std::chrono::duration<double> taken = steady_clock::now() - begun;
      report(taken.count());
      plan_watch_.step_done({.number = step_, .seconds = taken.count(), .update_s = update_s_});
      if (is_due(plan_.save_every)) {
        if (auto failure = save()) return failure;
      }
      if (eval_source_ != nullptr && is_due(plan_.eval_every)) run_evaluation();
    }
    if (auto failure = finish_saving()) return failure;
    if (is_first()) {
      report_sharing();
      report_memory();
    }
    if (step_ < steps) return interrupted();
    return finish("finished " + std::to_string(steps) + " steps");
  }

  bool is_due(std::int64_t every) const {
    return step_ == plan_.schedule.steps || (every > 0 && step_ % every == 0);
  }

  /// What is being saved is written meanwhile. A stop is obeyed by the next step.
  void run_evaluation() {
    clock_.enter(Phase::eval);
    auto report = evaluate({.plan = plan_,
                            .workload = workload_,
                            .source = *eval_source_,
                            .communicator = comm_,
                            .learner = learner_,
                            .clock = clock_,
                            .is_stopped =
                                [this] {
                                  sum_with_stop_vote({});
                                  return stopped_.has_value();
                                }},
                           step_);
    if (report) reporter_.evaluated(*report);
    clock_.enter(Phase::step);
  }

  enum class StepEnd { done, stopped, save_failed };

  /// One optimizer step; none of it remains when any rank was asked to stop meanwhile.
  StepEnd train_step() {
    const double waited_before = clock_.seen().collective_seconds;
    const auto passes = read_passes();
    double weight = 0;
    for (const auto& pass : passes) weight += static_cast<double>(pass.weight);
    const double has_failed = pending_ || saving_->has_failed() ? 1.0 : 0.0;
    const auto shared = sum_with_stop_vote({weight, has_failed});
    if (shared[1] > 0) return StepEnd::save_failed;
    if (stopped_) return StepEnd::stopped;
    const auto weight_of_step = static_cast<std::int64_t>(shared[0]);
    if (weight_of_step == 0) throw BadDataError(nothing_counts());
    const auto sent_before = comm_.volume();
    for (const auto& pass : passes) {
      const bool is_first_pass = &pass == &passes.front();
      if (!is_first_pass) sum_with_stop_vote({});
      if (stopped_) return StepEnd::stopped;
      const bool is_last_pass = &pass == &passes.back();
      if (is_last_pass && learner_.passes_change_state()) wait_until_copied();
      if (!is_last_pass) learner_.look_ahead(std::next(&pass)->batch);
      learner_.pass(pass.batch, pass.first_sample, weight_of_step);
    }
    lr_ = learning_rate(plan_.schedule, step_);
    wait_until_copied();
    update(weight_of_step);
    weight_ = static_cast<double>(weight_of_step);
    if (std::isfinite(outcome_.loss)) loss_ = outcome_.loss;
    next_sample_ += plan_.batch_size;
    ++step_;
    if (outcome_.is_applied) learner_.end_step(step_);
    const auto sent = comm_.volume();
    step_volume_ = {.elements_sent = sent.elements_sent - sent_before.elements_sent,
                    .bytes_sent = sent.bytes_sent - sent_before.bytes_sent};
    clock_.step_done(step_);
    waited_seconds_ = clock_.seen().collective_seconds - waited_before;
    return StepEnd::done;
  }

  void update(std::int64_t weight_of_step) {
    const auto begun = steady_clock::now();
    const double waited_before_s = clock_.seen().collective_seconds;
    outcome_ = learner_.update(lr_, weight_of_step);
    const std::chrono::duration<double> taken = steady_clock::now() - begun;
    update_s_ = taken.count() - (clock_.seen().collective_seconds - waited_before_s);
  }

  /// Collective: the sums over the ranks; sets `stopped_` when any was asked to stop.
  std::vector<double> sum_with_stop_vote(std::vector<double> mine) {
    const std::size_t count = mine.size();
    const auto vote = stop_vote(comm_);
    mine.insert(mine.end(), vote.begin(), vote.end());
    const auto sums = sum_over_ranks(comm_, mine);
    stopped_ = asked_to_stop(comm_, std::span(sums).subspan(count));
    return sums;
  }

  std::vector<Pass> read_passes() {
    std::vector<Pass> passes;
    for (std::int64_t pass = 0; pass < plan_.accumulation; ++pass)
      passes.push_back(passes_->next());
    return passes;
  }

  std::string nothing_counts() const {
    return "step " + std::to_string(step_ + 1) + ", samples " + grouped(next_sample_) +
           " and following: " + workload_.nothing_counts();
  }

  /// What of the last step rank 0 has waited for other ranks; absent: there are none.
  std::optional<double> exposed_seconds() const {
    if (comm_.world_size() == 1) return std::nullopt;
    return waited_seconds_;
  }

  std::optional<Failure> report_step(double seconds) {
    const auto told = reporter_.step({.step = step_,
                                      .steps = plan_.schedule.steps,
                                      .loss = loss_,
                                      .metrics = metric_values(metrics_, outcome_.sums, weight_),
                                      .lr = lr_,
                                      .gradient_norm = outcome_.gradient_norm,
                                      .seconds = seconds,
                                      .exposed_seconds = exposed_seconds(),
                                      .units = plan_.batch_size * words_.units});
    if (told) return std::nullopt;
    return save_failure(step_, told.error());
  }

  /// What each rank held and moved, where ranks share anything out.
  void report_sharing() const {
    if (plan_.zero.stage == 0 && comm_.world_size() == 1) return;
    const ZeroReport report{.stage = plan_.zero.stage,
                            .ranks = comm_.world_size(),
                            .group_size = plan_.zero.group_size,
                            .parameters = trained_elements(tensors_of(plan_, workload_)),
                            .state_bytes = learner_.state_bytes(),
                            .elements_sent = step_volume_.elements_sent,
                            .bytes_sent = step_volume_.bytes_sent};
    if (plan_.zero.stage > 0) say(zero_line(report));
    // The last save would have said why not.
    (void)append_line(std::filesystem::path(plan_.out) / "metrics.jsonl", zero_json(report));
  }

  void report_memory() const {
    const auto bytes = peak_tensor_bytes(device_of(plan_.gpu));
    if (!bytes) return;
    say("GPU memory: tensors took " + grouped(*bytes) + " bytes at most");
    (void)append_line(std::filesystem::path(plan_.out) / "metrics.jsonl",
                      R"({"event":"memory","tensor_bytes_max":)" + std::to_string(*bytes) + "}");
  }

  /// A full disk may show here first; the next step tells all ranks.
  void report(double seconds) {
    if (!pending_) pending_ = report_step(seconds);
    if (outcome_.cosine)
      reporter_.reduction_checked({.step = step_,
                                   .codec = to_string(plan_.reduce.codec),
                                   .cosine = *outcome_.cosine,
                                   .cosine_min = plan_.reduce.check_min,
                                   .gave_up = outcome_.gave_up});
    saving_->step_took(seconds);
  }

  void wait_until_copied() {
    const auto timed = clock_.time(Section::save);
    saving_->wait_until_copied();
  }

  /// Some rank could not write: what all say about it.
  std::optional<Failure> failed_save() {
    if (auto failure = agree(comm_, pending_)) return failure;
    return finish_saving();
  }

  std::optional<Failure> finish_saving() {
    clock_.enter(Phase::save);
    return saving_->finish();
  }

  std::optional<Failure> save() {
    if (saved_step_ == step_) return std::nullopt;
    saved_step_ = step_;
    clock_.enter(Phase::save);
    if (auto failure = agree(comm_, pending_)) return failure;
    const auto left_out = learner_.prepare_save();
    saving_->begin(place(), left_out);
    reporter_.save_begins(step_);
    clock_.enter(Phase::step);
    return std::nullopt;
  }

  /// What ends the run when the step's numbers are not finite. An overflow of fp16 is only said.
  std::optional<Failure> not_finite() {
    if (outcome_.is_applied) return std::nullopt;
    const std::string step = "step " + std::to_string(step_);
    if (!std::isfinite(outcome_.loss))
      return diverged("the loss of " + step + " is " + number_text(outcome_.loss));
    if (plan_.precision != Precision::fp16)
      return diverged("the gradient of " + step + " is " + number_text(outcome_.gradient_norm));
    const std::string scale = number_text(learner_.loss_scale().scale);
    if (learner_.loss_scale().scale < kLossScaleMin) {
      return not_finite_failure("gradients of " + step + " overflow fp16 even at the loss scale " +
                                scale + "; --precision bf16 has more range");
    }
    if (is_first())
      say(step + ": a gradient overflowed fp16; the weights stay, the loss scale is now " + scale);
    return std::nullopt;
  }

  /// Collective. What one rank alone has is not the doing of a learning rate that is the same for
  /// all, and what the first step has is not that of any.
  Failure diverged(const std::string& what) {
    std::vector<double> here(static_cast<std::size_t>(comm_.world_size()));
    here[static_cast<std::size_t>(comm_.rank())] = learner_.is_finite_here() ? 0.0 : 1.0;
    const auto ranks = sum_over_ranks(comm_, here);
    const auto first = std::ranges::find(ranks, 1.0);
    if (first != ranks.end() && std::ranges::count(ranks, 1.0) == 1 && ranks.size() > 1) {
      auto failure =
          not_finite_failure(what + ", by " + comm_.named(static_cast<int>(first - ranks.begin())) +
                             " alone: its samples, its weights or its memory are not right");
      failure.exit_code = exit_code::kInternal;  // another attempt may go well
      return failure;
    }
    if (step_ == 1)
      return not_finite_failure(what +
                                " before any weight has changed: those that it began with, "
                                "frozen ones too, or its samples are not finite or far too large");
    return not_finite_failure(what + "; --lr is " + number_text(plan_.schedule.lr) +
                              " and should be lower");
  }

  static Failure not_finite_failure(const std::string& cause) {
    return {.exit_code = exit_code::kBadConfig, .reason = "LossNotFinite", .message = cause};
  }

  Failure interrupted() const {
    if (step_ == 0) return interrupted_early(*stopped_);
    return {.exit_code = exit_code::kInterrupted,
            .reason = "Interrupted",
            .message = *stopped_ + "; step " + std::to_string(step_) + " of " +
                       std::to_string(plan_.schedule.steps) +
                       " is saved, --resume goes on from there"};
  }

  std::optional<Failure> finish(const std::string& how) const {
    if (!is_first()) return std::nullopt;
    char loss[32];
    std::snprintf(loss, sizeof loss, "%.4f", loss_);
    const bool has_saved = saving_ && !saving_->last_path().empty();
    say(how + " | final loss " + loss + " | checkpoint " +
        (has_saved ? saving_->last_path() : checkpoint_path_));
    return std::nullopt;
  }

  const TrainPlan& plan_;
  const SampleSource& source_;
  const SampleSource* eval_source_;
  Communicator& comm_;
  const OutSharing& sharing_;
  const OutClaim claim_;
  PhaseClock& clock_;
  Reporter& reporter_;
  const Workload& workload_;
  const SampleWords words_;
  const std::vector<Metric> metrics_;
  TimedByDevice timed_;
  Learner learner_;
  PlanWatch plan_watch_;
  std::optional<Saving> saving_;
  std::optional<PassReader> passes_;
  std::optional<std::string> stopped_;  // who was asked to stop
  std::optional<Failure> pending_;      // rank 0's, until all agree on it
  std::string checkpoint_path_;         // of the one it began from
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = 0;
  std::int64_t next_sample_ = 0;
  UpdateOutcome outcome_;
  CommVolume step_volume_;     // of the last step
  double weight_ = 0;          // of the last step
  double update_s_ = 0;        // of the last step, without waits
  double waited_seconds_ = 0;  // in the last step, for other ranks
  double loss_ = 0;            // of the last step that has one
  double lr_ = 0;
};

}  // namespace

LoopEnd train(const LoopInputs& inputs) { return Loop(inputs).run(); }

}  // namespace tj::trainer
