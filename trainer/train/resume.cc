#include "trainer/train/resume.h"

#include <torch/torch.h>

#include <cstring>

#include "trainer/checkpoint/training_state.h"
#include "trainer/comm/agreement.h"
#include "trainer/report/progress.h"

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

/// Rank 0's part.
Beginning read_newest(const ResumeInputs& inputs, const StateTensors& state) {
  const auto& plan = inputs.plan;
  auto search = newest_usable_checkpoint(plan.out);
  for (const auto& damaged : search.damaged) say("checkpoint not usable: " + damaged);
  if (!search.found && search.damaged.empty()) {
    say("--resume: no checkpoint in " + plan.out + " yet; training starts from scratch");
    return {};
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

/// Rank 0's text on all ranks.
std::string shared_text(Communicator& comm, const std::string& text) {
  auto length = torch::tensor({static_cast<std::int64_t>(text.size())}, torch::kInt64);
  comm.broadcast(length, 0);
  auto bytes = torch::zeros({length.item<std::int64_t>()}, torch::kUInt8);
  if (comm.rank() == 0) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  if (bytes.numel() > 0) comm.broadcast(bytes, 0);
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(bytes.numel())};
}

void share(Communicator& comm, const std::vector<NamedTensor>& tensors) {
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
  if (comm.rank() == 0 && inputs.plan.resume) beginning = read_newest(inputs, state);
  beginning.failure = agree(comm, beginning.failure);
  if (beginning.failure || comm.world_size() == 1) return beginning;
  const std::string text =
      shared_text(comm, beginning.manifest ? manifest_text(*beginning.manifest) : "");
  if (!text.empty()) beginning.manifest = manifest_from(text).value();
  share(comm, state.model);
  if (!beginning.manifest) return beginning;  // moments begin as zeros everywhere
  share(comm, state.optimizer);
  share(comm, state.ema);
  return beginning;
}

}  // namespace tj::trainer
