#include "trainer/train/loop.h"

#include <torch/torch.h>

#include <chrono>
#include <cmath>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/data/batch_reader.h"
#include "trainer/models/gpt2.h"
#include "trainer/report/progress.h"
#include "trainer/train/adamw.h"
#include "trainer/train/resume.h"
#include "trainer/train/saving.h"
#include "trainer/train/stop_request.h"

namespace tj::trainer {
namespace {
using std::chrono::steady_clock;

class Loop {
 public:
  explicit Loop(const LoopInputs& inputs)
      : plan_(inputs.plan),
        source_(inputs.source),
        comm_(inputs.communicator),
        space_{.seed = plan_.seed,
               .token_count = source_.token_count(),
               .sequence_tokens = plan_.model.context},
        model_(plan_.model, plan_.seed),
        optimizer_(model_.parameters(), plan_.optimizer),
        metrics_file_(std::filesystem::path(plan_.out) / "metrics.jsonl") {}

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
    const auto beginning = begin_from_checkpoint(
        {.plan = plan_, .communicator = comm_, .data_tokens = space_.token_count}, state());
    if (beginning.failure) return beginning.failure;
    if (beginning.manifest) go_on_from(*beginning.manifest);
    checkpoint_path_ = beginning.checkpoint_path;
    saving_.emplace(comm_, SavingOptions{.out = plan_.out, .keep = plan_.keep}, state());
    sync_ = comm_.synchronise(model_.parameters(), model_.names());
    return std::nullopt;
  }

  /// All that a checkpoint holds in tensors.
  StateTensors state() const {
    StateTensors state;
    append_tensors(state.model, model_.names(), model_.parameters());
    append_tensors(state.optimizer, model_.names(), optimizer_.first_moments(), "exp_avg.");
    append_tensors(state.optimizer, model_.names(), optimizer_.second_moments(), "exp_avg_sq.");
    return state;
  }

  /// All that a checkpoint holds beside the tensors.
  Manifest place() const {
    return {.step = step_,
            .next_sample = next_sample_,
            .seed = plan_.seed,
            .data_tokens = space_.token_count,
            .loss = loss_,
            .model = plan_.model,
            .files = {}};
  }

  void go_on_from(const Manifest& manifest) {
    step_ = saved_step_ = manifest.step;
    next_sample_ = manifest.next_sample;
    loss_ = manifest.loss;
    optimizer_.set_step_count(step_);
  }

  std::optional<Failure> step_until_end() {
    const std::int64_t steps = plan_.schedule.steps;
    if (step_ >= steps)
      return finish("nothing to do: " + std::to_string(step_) + " of " + std::to_string(steps) +
                    " steps are done");
    batches_.emplace(source_,
                     BatchOrder{.space = space_,
                                .share = {.micro_batch = plan_.micro_batch,
                                          .world_size = comm_.world_size(),
                                          .rank = comm_.rank()},
                                .batch_size = plan_.batch_size,
                                .accumulation = plan_.accumulation,
                                .next_sample = next_sample_},
                     plan_.data_threads);
    while (step_ < steps) {
      const auto begun = steady_clock::now();
      const bool asked_to_stop = train_step();
      if (!std::isfinite(loss_)) return diverged();
      if (has_save_failed_) return failed_save();
      const std::chrono::duration<double> taken = steady_clock::now() - begun;
      report(taken.count());
      const bool due = plan_.save_every > 0 && step_ % plan_.save_every == 0;
      if (due || asked_to_stop || step_ == steps) {
        if (auto failure = save()) return failure;
      }
      if (asked_to_stop && step_ < steps) break;
    }
    if (auto failure = saving_->finish()) return failure;
    if (step_ < steps) return interrupted();
    return finish("finished " + std::to_string(steps) + " steps");
  }

  /// One optimizer step. True when any rank was asked to stop.
  bool train_step() {
    const double tokens = static_cast<double>(tokens_per_step());
    double loss_sum = 0;
    for (std::int64_t pass = 0; pass < plan_.accumulation; ++pass) {
      if (pass + 1 == plan_.accumulation) sync_->before_last_pass();
      const auto loss = model_.loss_sum(next_batch());
      // Divided by the tokens of all ranks and passes, so that neither changes the sum; the mean
      // over the ranks that follows divides by their number once too often.
      backward(loss * (static_cast<double>(comm_.world_size()) / tokens));
      loss_sum += loss.item<double>();
    }
    auto shared = torch::tensor(
        {loss_sum, stop_signal() != 0 ? 1.0 : 0.0, pending_ || saving_->has_failed() ? 1.0 : 0.0},
        torch::kFloat64);
    comm_.all_reduce_sum(shared);
    has_save_failed_ = shared[2].item<double>() > 0;
    loss_ = shared[0].item<double>() / tokens;
    if (std::isfinite(loss_)) update();
    next_sample_ += plan_.batch_size;
    ++step_;
    return shared[1].item<double>() > 0;
  }

  void backward(const at::Tensor& loss) {
    try {
      loss.backward();
    } catch (const std::exception& failure) {
      comm_.check_peers(failure.what());
      throw;
    }
  }

  void update() {
    if (plan_.grad_clip > 0)
      torch::nn::utils::clip_grad_norm_(model_.parameters(), plan_.grad_clip);
    lr_ = learning_rate(plan_.schedule, step_);
    saving_->wait_until_copied();
    optimizer_.step(lr_);
    // In place: the gradients are windows on the buckets of the Reducer.
    for (const auto& parameter : model_.parameters()) parameter.mutable_grad().zero_();
  }

  at::Tensor next_batch() {
    auto tokens = batches_->next();
    if (!tokens) throw BadDataError(describe(tokens.error()));
    return torch::from_blob(tokens->data(), {plan_.micro_batch, plan_.model.context + 1},
                            torch::kInt32)
        .to(torch::kInt64);
  }

  std::int64_t tokens_per_step() const { return plan_.batch_size * plan_.model.context; }

  std::optional<Failure> report_step(double seconds) {
    const StepReport report{.step = step_,
                            .steps = plan_.schedule.steps,
                            .loss = loss_,
                            .lr = lr_,
                            .seconds = seconds,
                            .tokens = tokens_per_step()};
    const bool is_first_or_last = step_ == 1 || step_ == report.steps;
    if (step_ % plan_.log_every == 0 || is_first_or_last) say(step_line(report));
    const auto written = append_line(metrics_file_, step_json(report));
    if (written) return std::nullopt;
    return save_failure(step_, written.error());
  }

  /// A full disk may show here first; the next step tells all ranks.
  void report(double seconds) {
    if (is_first() && !pending_) pending_ = report_step(seconds);
  }

  /// Some rank could not write: what all say about it.
  std::optional<Failure> failed_save() {
    if (auto failure = agree(comm_, pending_)) return failure;
    return saving_->finish();
  }

  std::optional<Failure> save() {
    if (saved_step_ == step_) return std::nullopt;
    saved_step_ = step_;
    if (auto failure = agree(comm_, pending_)) return failure;
    return saving_->begin(place());
  }

  Failure diverged() const {
    return {.exit_code = exit_code::kBadConfig,
            .reason = "LossNotFinite",
            .message = "the loss of step " + std::to_string(step_) + " is " + number_text(loss_) +
                       "; --lr is " + number_text(plan_.schedule.lr) + " and should be lower"};
  }

  Failure interrupted() const {
    const int signal = stop_signal();
    return {.exit_code = exit_code::kInterrupted,
            .reason = "Interrupted",
            .message = (signal == 0 ? std::string("another rank was asked to stop")
                                    : "asked to stop by signal " + std::to_string(signal)) +
                       "; step " + std::to_string(step_) + " of " +
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
  const TokenSource& source_;
  Communicator& comm_;
  SampleSpace space_;
  Gpt2 model_;
  AdamW optimizer_;
  std::unique_ptr<GradientSync> sync_;
  std::optional<Saving> saving_;
  std::optional<BatchReader> batches_;
  std::filesystem::path metrics_file_;
  std::optional<Failure> pending_;  // rank 0's, until all agree on it
  bool has_save_failed_ = false;    // on some rank
  std::string checkpoint_path_;     // of the one it began from
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = 0;
  std::int64_t next_sample_ = 0;
  double loss_ = 0;
  double lr_ = 0;
};

}  // namespace

LoopEnd train(const LoopInputs& inputs) { return Loop(inputs).run(); }

}  // namespace tj::trainer
