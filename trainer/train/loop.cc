#include "trainer/train/loop.h"

#include <torch/torch.h>

#include <bit>
#include <chrono>
#include <cmath>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/data/batch_reader.h"
#include "trainer/report/progress.h"
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
    std::optional<Failure> mine;
    if (is_first() && plan_.resume) mine = resume();
    if (auto failure = agree(comm_, mine)) return failure;
    share_state();
    sync_ = comm_.synchronise(model_.parameters(), model_.names());
    return std::nullopt;
  }

  std::optional<Failure> resume() {
    const auto search = newest_usable_checkpoint(plan_.out);
    for (const auto& damaged : search.damaged) say("checkpoint not usable: " + damaged);
    if (!search.found) {
      if (search.damaged.empty()) {
        say("--resume: no checkpoint in " + plan_.out + " yet; training starts from scratch");
        return std::nullopt;
      }
      return Failure{.exit_code = exit_code::kBadData,
                     .reason = "NoUsableCheckpoint",
                     .message = "--resume: none of the " + std::to_string(search.damaged.size()) +
                                " checkpoints in " + plan_.out +
                                " is usable; the newest: " + search.damaged.front()};
    }
    const auto& manifest = search.found->manifest;
    if (auto mismatch = mismatch_with(manifest)) return mismatch;
    if (const auto loaded = load_checkpoint(*search.found, {model_, optimizer_}); !loaded) {
      return Failure{.exit_code = exit_code::kBadData,
                     .reason = "NoUsableCheckpoint",
                     .message = "--resume: " + search.found->folder.string() + ": " +
                                describe(loaded.error())};
    }
    step_ = saved_step_ = manifest.step;
    next_sample_ = manifest.next_sample;
    loss_ = manifest.loss;
    checkpoint_path_ = search.found->folder.string();
    say("resumed from " + checkpoint_path_ + ": " + std::to_string(step_) +
        " steps done, next sample " + grouped(next_sample_));
    if (manifest.data_tokens != space_.token_count) {
      say("the training text has changed since: " + grouped(manifest.data_tokens) +
          " tokens then, " + grouped(space_.token_count) +
          " now; the order of the samples is a new one");
    }
    return std::nullopt;
  }

  std::optional<Failure> mismatch_with(const Manifest& manifest) const {
    std::string difference;
    const auto compare = [&](const char* flag, auto saved, auto asked) {
      if (saved == asked || !difference.empty()) return;
      difference = std::string(flag) + " is " + std::to_string(asked) + ", the checkpoint step " +
                   std::to_string(manifest.step) + " in " + plan_.out + " was made with " +
                   std::to_string(saved);
    };
    compare("--layers", manifest.model.layers, plan_.model.layers);
    compare("--heads", manifest.model.heads, plan_.model.heads);
    compare("--width", manifest.model.width, plan_.model.width);
    compare("--vocabulary", manifest.model.vocabulary, plan_.model.vocabulary);
    compare("--seq-len", manifest.model.context, plan_.model.context);
    compare("--seed", manifest.seed, plan_.seed);
    if (difference.empty()) return std::nullopt;
    return Failure{.exit_code = exit_code::kBadConfig,
                   .reason = "CheckpointMismatch",
                   .message = difference + "; give the same, or another --out"};
  }

  /// Workers on different machines share no disk: what rank 0 has read goes over the network.
  void share_state() {
    const at::NoGradGuard no_grad;
    auto place =
        torch::tensor({step_, next_sample_, std::bit_cast<std::int64_t>(loss_)}, torch::kInt64);
    comm_.broadcast(place, 0);
    step_ = place[0].item<std::int64_t>();
    next_sample_ = place[1].item<std::int64_t>();
    loss_ = std::bit_cast<double>(place[2].item<std::int64_t>());
    saved_step_ = step_;
    for (auto tensor : model_.parameters()) comm_.broadcast(tensor, 0);
    if (step_ == 0) return;
    for (auto tensor : optimizer_.first_moments()) comm_.broadcast(tensor, 0);
    for (auto tensor : optimizer_.second_moments()) comm_.broadcast(tensor, 0);
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
      const std::chrono::duration<double> taken = steady_clock::now() - begun;
      if (auto failure = agree_on_metrics(taken.count())) return failure;
      const bool due = plan_.save_every > 0 && step_ % plan_.save_every == 0;
      if (due || asked_to_stop || step_ == steps) {
        if (auto failure = save()) return failure;
      }
      if (asked_to_stop && step_ < steps) return interrupted();
    }
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
    auto shared = torch::tensor({loss_sum, stop_signal() != 0 ? 1.0 : 0.0}, torch::kFloat64);
    comm_.all_reduce_sum(shared);
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
    return save_failure(written.error());
  }

  std::optional<Failure> agree_on_metrics(double seconds) {
    if (is_first() && !pending_) pending_ = report_step(seconds);
    // A full disk shows here first; it ends the run at the next save, where all ranks agree anyway.
    return comm_.world_size() == 1 ? pending_ : std::nullopt;
  }

  Failure save_failure(const Error& error) const {
    return {.exit_code = exit_code::kSaveFailed,
            .reason = "SaveFailed",
            .message = "step " + std::to_string(step_) + " could not be saved: " + describe(error)};
  }

  std::optional<Failure> save() {
    if (saved_step_ == step_) return std::nullopt;
    std::optional<Failure> mine = pending_;
    if (is_first() && !mine) {
      const Manifest manifest{.step = step_,
                              .next_sample = next_sample_,
                              .seed = plan_.seed,
                              .data_tokens = space_.token_count,
                              .loss = loss_,
                              .model = plan_.model,
                              .files = {}};
      const auto path = save_checkpoint(plan_.out, {model_, optimizer_}, manifest);
      if (path) {
        checkpoint_path_ = path->string();
        say("checkpoint " + checkpoint_path_);
        prune_checkpoints(plan_.out, plan_.keep);
      } else {
        mine = save_failure(path.error());
      }
    }
    saved_step_ = step_;
    return agree(comm_, mine);
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
    say(how + " | final loss " + loss + " | checkpoint " + checkpoint_path_);
    return std::nullopt;
  }

  const TrainPlan& plan_;
  const TokenSource& source_;
  Communicator& comm_;
  SampleSpace space_;
  Gpt2 model_;
  AdamW optimizer_;
  std::unique_ptr<GradientSync> sync_;
  std::optional<BatchReader> batches_;
  std::filesystem::path metrics_file_;
  std::optional<Failure> pending_;  // rank 0's, until all agree on it
  std::string checkpoint_path_;
  std::int64_t step_ = 0;
  std::int64_t saved_step_ = 0;
  std::int64_t next_sample_ = 0;
  double loss_ = 0;
  double lr_ = 0;
};

}  // namespace

LoopEnd train(const LoopInputs& inputs) { return Loop(inputs).run(); }

}  // namespace tj::trainer
