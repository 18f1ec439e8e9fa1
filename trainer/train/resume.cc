#include "trainer/train/resume.h"

#include <torch/torch.h>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/report/progress.h"
#include "trainer/train/early_stop.h"
#include "trainer/train/stop_request.h"

namespace tj::trainer {
namespace {

Failure not_usable(const std::string& message) {
  return {.exit_code = exit_code::kBadData,
          .reason = "NoUsableCheckpoint",
          .message = "--resume: " + message};
}

std::optional<Failure> mismatch(const Manifest& manifest, const TrainPlan& plan) {
  std::string difference;
  const auto compare = [&](const char* flag, auto saved, auto asked) {
    if (saved == asked || !difference.empty()) return;
    difference = std::string(flag) + " is " + std::to_string(asked) + ", the checkpoint step " +
                 std::to_string(manifest.step) + " in " + plan.out + " was made with " +
                 std::to_string(saved);
  };
  compare("--layers", manifest.model.layers, plan.model.layers);
  compare("--heads", manifest.model.heads, plan.model.heads);
  compare("--width", manifest.model.width, plan.model.width);
  compare("--vocabulary", manifest.model.vocabulary, plan.model.vocabulary);
  compare("--seq-len", manifest.model.context, plan.model.context);
  compare("--seed", manifest.seed, plan.seed);
  const auto asked = numerics_of(plan);
  compare("--logical-shards", manifest.numerics.logical_shards, asked.logical_shards);
  if (asked.logical_shards > 0) {
    compare("--batch-size", manifest.numerics.batch_size, asked.batch_size);
    compare("--threads", manifest.numerics.threads, asked.threads);
  }
  compare("whether --ema is given", manifest.numerics.has_averages, asked.has_averages);
  if (difference.empty()) return std::nullopt;
  return Failure{.exit_code = exit_code::kBadConfig,
                 .reason = "CheckpointMismatch",
                 .message = difference + "; give the same, or another --out"};
}

/// Rank 0's part where there is no checkpoint.
Beginning read_init(const TrainPlan& plan, const StateTensors& state) {
  if (plan.init_from.empty()) return {};
  const auto read = fill(state.model, [&](std::span<const TensorTarget> targets) {
    return read_initial_weights(plan.init_from, targets);
  });
  if (!read) {
    return {.failure = Failure{.exit_code = exit_code::kBadData,
                               .reason = "InitFromNotUsable",
                               .message = "--init-from: " + plan.init_from + ": " +
                                          describe(read.error())},
            .manifest = {},
            .checkpoint_path = {}};
  }
  say("weights of " + plan.init_from + "; the optimizer starts afresh");
  return {};
}

/// Averages begin as the weights do.
void begin_averages(const StateTensors& state) {
  const at::NoGradGuard no_grad;
  for (std::size_t index = 0; index < state.ema.size(); ++index)
    state.ema[index].tensor.copy_(state.model[index].tensor);
}

/// Rank 0's part.
Beginning read_newest(const ResumeInputs& inputs, const StateTensors& state) {
  const auto& plan = inputs.plan;
  auto search = newest_usable_checkpoint(plan.out, [] { return stop_signal() != 0; });
  if (stop_signal() != 0) return {};  // all ranks hear of it after the agreement
  for (const auto& damaged : search.damaged) say("checkpoint not usable: " + damaged);
  if (!search.found && search.damaged.empty()) {
    say("--resume: no checkpoint in " + plan.out + " yet; training starts " +
        (plan.init_from.empty() ? "from scratch" : "from " + plan.init_from));
    return read_init(plan, state);
  }
  if (!search.found) {
    return {.failure = not_usable("none of the " + std::to_string(search.damaged.size()) +
                                  " checkpoints in " + plan.out +
                                  " is usable; the newest: " + search.damaged.front()),
            .manifest = {},
            .checkpoint_path = {}};
  }
  auto& [folder, manifest] = *search.found;
  if (auto difference = mismatch(manifest, plan))
    return {.failure = difference, .manifest = {}, .checkpoint_path = {}};
  if (const auto loaded = load_checkpoint(*search.found, state); !loaded) {
    return {.failure = not_usable(folder.string() + ": " + describe(loaded.error())),
            .manifest = {},
            .checkpoint_path = {}};
  }
  say("resumed from " + folder.string() + ": " + std::to_string(manifest.step) +
      " steps done, next sample " + grouped(manifest.next_sample));
  if (manifest.data_tokens != inputs.data_tokens) {
    say("the training text has changed since: " + grouped(manifest.data_tokens) + " tokens then, " +
        grouped(inputs.data_tokens) + " now; the order of the samples is a new one");
  }
  return {.failure = {}, .manifest = std::move(manifest), .checkpoint_path = folder.string()};
}

/// Interrupted, on all ranks, when any was asked to stop. What is on the disk is all there is.
std::optional<Failure> stopped_early(Communicator& comm) {
  const int signal = stop_signal();
  auto asked = torch::tensor({signal != 0 ? 1.0 : 0.0}, torch::kFloat64);
  comm.all_reduce_sum(asked);
  if (asked.item<double>() == 0) return std::nullopt;
  return interrupted_early(signal);
}

void share(Communicator& comm, const std::vector<NamedTensor>& tensors) {
  if (comm.world_size() == 1) return;
  const at::NoGradGuard no_grad;
  for (const auto& named : tensors) {
    auto tensor = named.tensor;
    comm.broadcast(tensor, 0);
  }
}

}  // namespace

Numerics numerics_of(const TrainPlan& plan) {
  return {.logical_shards = plan.logical_shards,
          .batch_size = plan.batch_size,
          .threads = plan.threads,
          .has_averages = plan.ema_decay > 0};
}

Beginning begin_from_checkpoint(const ResumeInputs& inputs, const StateTensors& state) {
  auto& comm = inputs.communicator;
  Beginning beginning;
  if (comm.rank() == 0)
    beginning = inputs.plan.resume ? read_newest(inputs, state) : read_init(inputs.plan, state);
  beginning.failure = agree(comm, beginning.failure);
  if (!beginning.failure) beginning.failure = stopped_early(comm);
  if (beginning.failure) return beginning;
  const std::string text =
      shared_text(comm, beginning.manifest ? manifest_text(*beginning.manifest) : "", 0);
  if (!text.empty()) beginning.manifest = manifest_from(text).value();
  share(comm, state.model);
  if (!beginning.manifest) {  // moments begin as zeros everywhere
    begin_averages(state);
    return beginning;
  }
  share(comm, state.optimizer);
  share(comm, state.ema);
  return beginning;
}

}  // namespace tj::trainer
