#include "trainer/train/resume.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/train/reduction_state.h"
#include "trainer/train/stop_vote.h"
#include "trainer/train/sync_mark.h"
#include "trainer/train/tuning.h"

namespace tj::trainer {
namespace {

Failure not_usable(const std::string& message) {
  return {.exit_code = exit_code::kBadData,
          .reason = "NoUsableCheckpoint",
          .message = "--resume: " + message};
}

/// `error` is of a file of the checkpoint.
Failure not_usable(const std::filesystem::path& folder, const Error& error) {
  const bool names_folder = error.subject.starts_with(folder.string());
  auto failure = not_usable((names_folder ? "" : folder.string() + ": ") + describe(error));
  failure.exit_code = exit_code_of_file(error);
  return failure;
}

/// With the choices that there were none of when the manifest was written.
ModelShape completed(ModelShape saved, const ModelShape& asked) {
  for (auto i = saved.size(); i < asked.size() && !asked[i].names.empty(); ++i)
    saved.push_back({.key = asked[i].key, .flag = "", .value = 0});
  return saved;
}

std::string value_text(const ShapeEntry& asked, std::int64_t value) {
  const bool is_named = value >= 0 && static_cast<std::size_t>(value) < asked.names.size();
  return is_named ? asked.names[static_cast<std::size_t>(value)] : std::to_string(value);
}

/// The first difference between a checkpoint and what is asked for, in words.
class Comparison {
 public:
  Comparison(const Manifest& manifest, const TrainPlan& plan) : manifest_(manifest), plan_(plan) {}

  template <typename T>
  void add(const std::string& name, T saved, T asked) {
    if (saved == asked) return;
    differ(name, std::to_string(saved), std::to_string(asked));
  }
  void add_models(const ModelShape& asked) {
    const auto saved = completed(manifest_.model, asked);
    if (difference_.empty()) difference_ = difference_of_keys(saved, asked);
    for (std::size_t i = 0; difference_.empty() && i < asked.size(); ++i)
      if (saved[i].value != asked[i].value)
        differ(asked[i].flag, value_text(asked[i], saved[i].value),
               value_text(asked[i], asked[i].value));
  }
  const std::string& difference() const { return difference_; }

 private:
  void differ(const std::string& name, const std::string& saved, const std::string& asked) {
    if (difference_.empty())
      difference_ = name + " is " + asked + ", " + checkpoint() + " was made with " + saved;
  }
  std::string checkpoint() const {
    return "the checkpoint step " + std::to_string(manifest_.step) + " in " + plan_.out;
  }

  /// Whether the same things are said of both models at all. What only some runs have stands last.
  std::string difference_of_keys(const ModelShape& saved, const ModelShape& asked) const {
    const auto has_same_key = [](const ShapeEntry& one, const ShapeEntry& other) {
      return one.key == other.key;
    };
    const auto [more_saved, more_asked] = std::ranges::mismatch(saved, asked, has_same_key);
    const bool ends_saved = more_saved == saved.end(), ends_asked = more_asked == asked.end();
    if (ends_saved && ends_asked) return "";
    const bool begins_alike = more_asked != asked.begin();
    if (begins_alike && ends_saved)
      return more_asked->flag + " is given, " + checkpoint() + " was made without it";
    if (begins_alike && ends_asked)
      return checkpoint() + " was made with " + more_saved->key + " " +
             std::to_string(more_saved->value) + ", which no flag asks for now";
    return "--model is " + plan_.model_name + ", " + checkpoint() + " is of another kind of model";
  }

  const Manifest& manifest_;
  const TrainPlan& plan_;
  std::string difference_;
};

std::optional<Failure> mismatch(const Manifest& manifest, const TrainPlan& plan,
                                const ModelShape& model) {
  Comparison comparison(manifest, plan);
  comparison.add_models(model);
  comparison.add("--seed", manifest.seed, plan.seed);
  const auto asked = numerics_of(plan);
  comparison.add("--logical-shards", manifest.numerics.logical_shards, asked.logical_shards);
  if (asked.logical_shards > 0) {
    comparison.add("--batch-size", manifest.numerics.batch_size, asked.batch_size);
    comparison.add("--threads", manifest.numerics.threads, asked.threads);
  }
  comparison.add("whether --ema is given", manifest.numerics.has_averages, asked.has_averages);
  if (comparison.difference().empty()) return std::nullopt;
  return Failure{.exit_code = exit_code::kBadConfig,
                 .reason = "CheckpointMismatch",
                 .message = comparison.difference() + "; give the same, or another --out"};
}

/// Averages begin as the weights do.
void begin_averages(const StateTensors& state) {
  const at::NoGradGuard no_grad;
  std::map<std::string_view, at::Tensor> weights;
  for (const auto& named : state.model) weights[named.name] = named.tensor;
  for (const auto& named : state.ema) {
    auto average = named.tensor;
    if (average.defined()) average.copy_(weights.at(named.name).detach());
  }
}

/// What rank 0 has found on its disk, before anything is read of it.
struct Source {
  std::optional<Failure> failure;
  std::optional<FoundCheckpoint> checkpoint;
  std::vector<DamagedCheckpoint> newer;  // that are not usable
};

/// Rank 0's part.
Source find_newest(const ResumeInputs& inputs) {
  const auto& plan = inputs.plan;
  auto& clock = inputs.clock;
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
  if (auto difference = mismatch(search.found->manifest, plan, shape_of(plan, inputs.workload)))
    return {.failure = difference};
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

/// Collective: fills one group by `opened`, which is looked at on the ranks that read.
std::optional<Failure> fill_group(const ResumeInputs& inputs,
                                  const std::vector<NamedTensor>& tensors,
                                  const Result<TensorReader>& opened, int readers,
                                  const std::function<Failure(const Error&)>& failure_of) {
  auto& comm = inputs.communicator;
  std::optional<Failure> mine;
  if (!opened) mine = failure_of(opened.error());
  if (auto failure = agree(comm, mine)) return failure;
  const auto read = [&](const TensorTarget& target) {
    inputs.clock.moved();
    return (*opened)(target);
  };
  if (const auto filled = fill(comm, tensors, read, readers); !filled)
    mine = failure_of(filled.error());
  return agree(comm, mine);
}

/// Rank 0 reads: all have the same.
std::optional<Failure> load_memory(const ResumeInputs& inputs, const std::filesystem::path& folder,
                                   const StateTensors& state) {
  std::optional<Failure> mine;
  for (const auto& named : state.memory) {
    const auto filled =
        fill_bytes(inputs.communicator, named, folder / group_file_name(kMemoryStem, 0, 1));
    inputs.clock.moved();
    if (!filled) mine = not_usable(folder, filled.error());
  }
  return agree(inputs.communicator, mine);
}

/// Each rank reads where all see the same folder. `read`: what was read.
std::optional<Failure> load_checkpoint(const ResumeInputs& inputs, const std::string& name,
                                       const Manifest& manifest, const StateTensors& state,
                                       GroupStems& read) {
  const std::pair<const char*, const std::vector<NamedTensor>*> groups[] = {
      {kModelStem, &state.model}, {kOptimizerStem, &state.optimizer},
      {kEmaStem, &state.ema},     {kTrainingStem, &state.training},
      {kSyncStem, &state.sync},   {kRanksStem, &state.ranks},
      {kRoundStem, &state.round}};
  const GroupStems of_sync{kSyncStem, kRanksStem, kRoundStem};
  const auto folder = std::filesystem::path(inputs.plan.out) / name;
  const int readers = inputs.is_shared ? inputs.communicator.world_size() : 1;
  const auto fill_from = [&](const char* stem, const std::vector<NamedTensor>& tensors) {
    Result<TensorReader> reader{TensorReader()};
    if (inputs.communicator.rank() < readers) {
      auto catalog = TensorCatalog::open(folder, stem);
      reader =
          catalog ? Result(reader_of(std::move(*catalog))) : Result<TensorReader>(catalog.error());
    }
    return fill_group(inputs, tensors, reader, readers,
                      [&](const Error& error) { return not_usable(folder, error); });
  };
  for (const auto& [stem, tensors] : groups) {
    if (tensors->empty() || (of_sync.contains(stem) && !read.contains(stem))) continue;
    read.insert(stem);
    if (auto failure = fill_from(stem, *tensors)) return failure;
  }
  auto failure =
      load_reduction(inputs.communicator, manifest.reduction, inputs.plan.reduce, state.reduction,
                     [&](const auto& tensors) { return fill_from(kReductionStem, tensors); });
  return failure ? failure : load_memory(inputs, folder, state);
}

/// The parts of each copy become those of the first; of one copy nobody else has any.
void share_parts(Communicator& comm, const NamedTensor& named) {
  const int count = named.ranks_of_a_copy.value_or(comm.world_size());
  if (!named.tensor.defined()) return;  // nor do the ranks with the same part
  auto own = named.tensor.detach();
  auto none = torch::empty({0}, own.options());
  if (comm.rank() >= count) return comm.exchange(none, own, comm.rank() % count);
  for (int rank = comm.rank() + count; rank < comm.world_size(); rank += count)
    comm.exchange(own, none, rank);
}

/// The same seed gives the same weights, but processors may round differently.
void share(Communicator& comm, const std::vector<NamedTensor>& tensors) {
  if (comm.world_size() == 1) return;
  for (const auto& named : tensors) {
    if (!named.parts.empty()) {
      share_parts(comm, named);
      continue;
    }
    auto tensor = named.tensor.detach();
    comm.broadcast(tensor, 0);
  }
}

/// Collective: initial weights, those of --init-from where it is given.
std::optional<Failure> begin_afresh(const ResumeInputs& inputs, const StateTensors& state) {
  auto& comm = inputs.communicator;
  const auto& plan = inputs.plan;
  if (!plan.init_from.empty()) {
    const auto reader = inputs.workload.open_initial_weights(plan.init_from);
    const int readers = comm.world_size();  // each has looked at its shape already
    const auto failure = fill_group(inputs, state.model, reader, readers, [&](const Error& error) {
      return bad_init(plan.init_from, error);
    });
    if (failure) return failure;
    if (comm.rank() == 0) say("weights of " + plan.init_from + "; the optimizer starts afresh");
  } else {
    share(comm, state.model);
  }
  share(comm, state.training);  // as the optimizer it begins afresh
  begin_averages(state);        // moments begin as zeros everywhere
  return std::nullopt;
}

void say_where_it_goes_on(const FoundCheckpoint& checkpoint, const DataMark& data) {
  const auto& manifest = checkpoint.manifest;
  say("resumed from " + checkpoint.folder.string() + ": " + std::to_string(manifest.step) +
      " steps done, next sample " + grouped(manifest.next_sample));
  if (manifest.data == data) return;
  const auto text = [](const DataMark& mark) { return grouped(mark.count) + " " + mark.unit; };
  say("the training data has changed since: " + text(manifest.data) + " then, " + text(data) +
      " now; the order of the samples is a new one");
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
  if (comm.rank() == 0 && inputs.plan.resume) source = find_newest(inputs);
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
  beginning.manifest = manifest_from(text).value();
  const auto name =
      shared_text(comm, source.checkpoint ? source.checkpoint->folder.filename().string() : "", 0);
  const auto mark = sync_mark_of(inputs.plan.sync, comm.world_size());
  beginning.read = sync_groups_of(*beginning.manifest, mark);
  beginning.failure = load_checkpoint(inputs, name, *beginning.manifest, state, beginning.read);
  if (beginning.failure) return beginning;
  if (source.checkpoint) {
    beginning.checkpoint_path = source.checkpoint->folder.string();
    beginning.set_aside = set_all_aside(inputs, source.newer);
    say_where_it_goes_on(*source.checkpoint, inputs.data);
    if (const auto left = left_line(*beginning.manifest, mark); !left.empty()) say(left);
  }
  return beginning;
}

}  // namespace tj::trainer
