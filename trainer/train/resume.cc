#include "trainer/train/resume.h"

#include <torch/torch.h>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/initial_model.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/train/stop_vote.h"

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

/// Averages begin as the weights do.
void begin_averages(const StateTensors& state) {
  const at::NoGradGuard no_grad;
  for (std::size_t index = 0; index < state.ema.size(); ++index) {
    auto average = state.ema[index].tensor;
    if (average.defined()) average.copy_(state.model[index].tensor);
  }
}

/// What rank 0 has found on its disk, before anything is read of it.
struct Source {
  std::optional<Failure> failure;
  std::optional<FoundCheckpoint> checkpoint;
  std::vector<DamagedCheckpoint> newer;  // that are not usable
};

/// Rank 0's part.
Source find_newest(const TrainPlan& plan, PhaseClock& clock) {
  auto search = newest_usable_checkpoint(plan.out, [&clock] {
    clock.moved();
    return stop_signal() != 0;
  });
  if (stop_signal() != 0) return {};  // all ranks hear of it after the agreement
  for (const auto& damaged : search.damaged) say("checkpoint not usable: " + describe(damaged));
  if (!search.found && search.damaged.empty()) {
    say("--resume: no checkpoint in " + plan.out + " yet; training starts " +
        (plan.init_from.empty() ? "from scratch" : "from " + plan.init_from));
    return {};
  }
  if (!search.found) {
    return {.failure = not_usable("none of the " + std::to_string(search.damaged.size()) +
                                  " checkpoints in " + plan.out +
                                  " is usable; the newest: " + describe(search.damaged.front()))};
  }
  if (auto difference = mismatch(search.found->manifest, plan)) return {.failure = difference};
  return {.checkpoint = std::move(search.found), .newer = std::move(search.damaged)};
}

/// Rank 0's part, once the run goes on from an older one: not before, or the next attempt would
/// take a folder of damaged checkpoints for one without any.
std::vector<SetAside> set_all_aside(const ResumeInputs& inputs,
                                    const std::vector<DamagedCheckpoint>& newer) {
  std::vector<SetAside> result;
  for (const auto& damaged : newer) {
    if (!check_claim(inputs.plan.out, inputs.claim)) return result;  // the first save says why
    const auto as = set_aside(inputs.plan.out, damaged.name);
    say(as ? damaged.name + " is set aside as " + *as + ", and may be removed"
           : describe(as.error()));
    if (as) result.push_back({.damaged = damaged, .as = *as});
  }
  return result;
}

/// Collective: fills one group by `opened`, which is looked at on rank 0 alone.
std::optional<Failure> fill_group(const ResumeInputs& inputs,
                                  const std::vector<NamedTensor>& tensors,
                                  const Result<TensorReader>& opened,
                                  const std::function<Failure(const Error&)>& failure_of) {
  auto& comm = inputs.communicator;
  std::optional<Failure> mine;
  if (!opened) mine = failure_of(opened.error());
  if (auto failure = agree(comm, mine)) return failure;
  const auto read = [&](const TensorTarget& target) {
    inputs.clock.moved();
    return (*opened)(target);
  };
  if (const auto filled = fill(comm, tensors, read); !filled) mine = failure_of(filled.error());
  return agree(comm, mine);
}

std::optional<Failure> load_checkpoint(const ResumeInputs& inputs, const Source& source,
                                       const StateTensors& state) {
  const std::pair<const char*, const std::vector<NamedTensor>*> groups[] = {
      {kModelStem, &state.model}, {kOptimizerStem, &state.optimizer}, {kEmaStem, &state.ema}};
  for (const auto& [stem, tensors] : groups) {
    if (tensors->empty()) continue;
    Result<TensorReader> reader{TensorReader()};
    if (inputs.communicator.rank() == 0) {
      auto catalog = TensorCatalog::open(source.checkpoint->folder, stem);
      reader =
          catalog ? Result(reader_of(std::move(*catalog))) : Result<TensorReader>(catalog.error());
    }
    const auto failure = fill_group(inputs, *tensors, reader, [&](const Error& error) {
      return not_usable(source.checkpoint->folder.string() + ": " + describe(error));
    });
    if (failure) return failure;
  }
  return std::nullopt;
}

/// The same seed gives the same weights, but processors may round differently.
void share(Communicator& comm, const std::vector<NamedTensor>& tensors) {
  if (comm.world_size() == 1) return;
  for (const auto& named : tensors) {
    if (!named.parts.empty()) continue;  // of these nobody else has any
    auto tensor = named.tensor.detach();
    comm.broadcast(tensor, 0);
  }
}

/// Collective: initial weights, those of --init-from where it is given.
std::optional<Failure> begin_afresh(const ResumeInputs& inputs, const StateTensors& state) {
  auto& comm = inputs.communicator;
  const auto& plan = inputs.plan;
  if (!plan.init_from.empty()) {
    std::vector<std::string> names;
    for (const auto& named : state.model) names.push_back(named.name);
    const auto reader = comm.rank() == 0 ? open_initial_weights(plan.init_from, names)
                                         : Result<TensorReader>(TensorReader());
    const auto failure = fill_group(inputs, state.model, reader, [&](const Error& error) {
      return Failure{.exit_code = exit_code::kBadData,
                     .reason = "InitFromNotUsable",
                     .message = "--init-from: " + plan.init_from + ": " + describe(error)};
    });
    if (failure) return failure;
    if (comm.rank() == 0) say("weights of " + plan.init_from + "; the optimizer starts afresh");
  } else {
    share(comm, state.model);
  }
  begin_averages(state);  // moments begin as zeros everywhere
  return std::nullopt;
}

void say_where_it_goes_on(const FoundCheckpoint& checkpoint, std::int64_t data_tokens) {
  const auto& manifest = checkpoint.manifest;
  say("resumed from " + checkpoint.folder.string() + ": " + std::to_string(manifest.step) +
      " steps done, next sample " + grouped(manifest.next_sample));
  if (manifest.data_tokens == data_tokens) return;
  say("the training text has changed since: " + grouped(manifest.data_tokens) + " tokens then, " +
      grouped(data_tokens) + " now; the order of the samples is a new one");
}

/// Interrupted, on all ranks, when any was asked to stop. What is on the disk is all there is.
std::optional<Failure> stopped_early(Communicator& comm) {
  const auto mine = stop_vote(comm);
  const auto asked = asked_to_stop(comm, sum_over_ranks(comm, {mine.begin(), mine.end()}));
  if (!asked) return std::nullopt;
  return interrupted_early(*asked);
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
  Source source;
  if (comm.rank() == 0 && inputs.plan.resume) source = find_newest(inputs.plan, inputs.clock);
  Beginning beginning;
  beginning.failure = agree(comm, source.failure);
  if (!beginning.failure) beginning.failure = stopped_early(comm);
  if (beginning.failure) return beginning;
  const std::string text =
      shared_text(comm, source.checkpoint ? manifest_text(source.checkpoint->manifest) : "", 0);
  if (text.empty()) {
    beginning.failure = begin_afresh(inputs, state);
    return beginning;
  }
  beginning.failure = load_checkpoint(inputs, source, state);
  if (beginning.failure) return beginning;
  beginning.manifest = manifest_from(text).value();
  if (source.checkpoint) {
    beginning.checkpoint_path = source.checkpoint->folder.string();
    beginning.set_aside = set_all_aside(inputs, source.newer);
    say_where_it_goes_on(*source.checkpoint, inputs.data_tokens);
  }
  return beginning;
}

}  // namespace tj::trainer
