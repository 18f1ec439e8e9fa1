#include "trainer/train/engine.h"

#include <malloc.h>
#include <torch/torch.h>

#include <torch/version.h>

#include <algorithm>
#include <csignal>

#include "trainer/checkpoint/folder.h"
#include "trainer/comm/accelerator.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/rendezvous.h"
#include "trainer/data/sampler.h"
#include "trainer/launch/host.h"
#include "trainer/report/last_words.h"
#include "trainer/report/progress.h"
#include "trainer/train/early_stop.h"
#include "trainer/train/loop.h"
#include "trainer/train/stop_request.h"

namespace tj::trainer {
namespace {
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// With a failure of our own the others are told, if they are there at all.
constexpr milliseconds kRendezvousAfterFailure{10'000};

Failure bad_config(const Error& error) {
  return {.exit_code = exit_code::kBadConfig, .reason = "BadConfig", .message = describe(error)};
}

int fail(const Failure& failure, const ProcessEnv& env, std::optional<long long> step) {
  const std::string rank = "rank " + std::to_string(env.rank);
  const bool named = env.world_size == 1 || failure.message.starts_with(rank);
  write_last_words({.reason = failure.reason,
                    .message = failure.message,
                    .rank = env.rank,
                    .step = step,
                    .attempt = env.attempt});
  say_error("trainer: " + (named ? "" : rank + ": ") + failure.message);
  return failure.exit_code;
}

Failure bad_init(const Error& error) {
  return {.exit_code = exit_code::kBadData,
          .reason = "InitFromNotUsable",
          .message = "--init-from: " + describe(error)};
}

/// The model that --init-from names: its shape is the run's.
Result<std::optional<InitialModel>> read_init(const Flags& flags) {
  const auto path = flags.find("--init-from");
  if (path == flags.end()) return std::optional<InitialModel>();
  auto init = read_initial_model(path->second);
  if (!init) return init.error();
  return std::optional(std::move(*init));
}

struct Inputs {
  std::optional<TokenSource> source;
  std::optional<Failure> failure;
};

std::optional<Failure> check_out(const TrainPlan& plan) {
  if (const auto prepared = prepare_out_folder(plan.out); !prepared) {
    return Failure{.exit_code = exit_code::kSaveFailed,
                   .reason = "OutNotWritable",
                   .message = describe(prepared.error())};
  }
  const auto names = checkpoint_names(plan.out);
  if (plan.resume || names.empty()) return std::nullopt;
  return Failure{.exit_code = exit_code::kBadConfig,
                 .reason = "OutInUse",
                 .message = "--out " + plan.out + " already holds " + names.front() +
                            "; --resume goes on from it, or another folder is needed"};
}

Failure bad_data(const std::string& message) {
  return {.exit_code = exit_code::kBadData, .reason = "BadData", .message = message};
}

/// Opens the data, and completes the plan by what it says.
Inputs open_inputs(TrainPlan& plan, const ProcessEnv& env) {
  auto source = TokenSource::open(plan.data);
  if (!source) return {.source = {}, .failure = bad_data(describe(source.error()))};
  if (const auto settled = settle_vocabulary(plan, source->vocabulary()); !settled)
    return {.source = {}, .failure = bad_config(settled.error())};
  source->require_ids_below(source->vocabulary() > 0 ? source->vocabulary()
                                                     : plan.model.vocabulary);
  const std::int64_t needed = plan.model.context + 1;
  if (source->token_count() < needed) {
    return {.source = {},
            .failure = bad_data("--data " + plan.data.front() + ": holds " +
                                grouped(source->token_count()) + " tokens in " +
                                std::to_string(source->file_count()) +
                                " files; one sequence of --seq-len " +
                                std::to_string(plan.model.context) + " needs " + grouped(needed))};
  }
  Inputs inputs{.source = std::move(*source), .failure = {}};
  if (env.rank == 0) inputs.failure = check_out(plan);
  return inputs;
}

/// OpenMP reads its own variable; without it a process takes its share of the cores, not all of the
/// machine's.
std::optional<Setting> choose_threads(const TrainPlan& plan, const ProcessEnv& env) {
  if (plan.threads > 0) {
    at::set_num_threads(plan.threads);
    return std::nullopt;  // the plan has its row
  }
  if (process_env("OMP_NUM_THREADS")) {
    return Setting{"threads", std::to_string(at::get_num_threads()), "environment OMP_NUM_THREADS"};
  }
  const int cores = usable_cores();
  at::set_num_threads(std::max(1, cores / env.local_world_size));
  return Setting{"threads", std::to_string(at::get_num_threads()),
                 "computed: " + std::to_string(cores) + " usable cores / " +
                     std::to_string(env.local_world_size) + " local ranks"};
}

std::vector<Setting> all_settings(const TrainPlan& plan, const ProcessEnv& env,
                                  const TokenSource& source) {
  auto rows = plan.settings;
  const SampleSpace space{.seed = plan.seed,
                          .token_count = source.token_count(),
                          .sequence_tokens = plan.model.context};
  const std::int64_t epoch = samples_per_epoch(space);
  const std::int64_t samples = plan.batch_size * plan.schedule.steps;
  const std::string files = std::to_string(source.file_count()) + " files";
  char epochs[32];
  std::snprintf(epochs, sizeof epochs, "%.2f",
                static_cast<double>(samples) / static_cast<double>(epoch));
  rows.push_back({"tokens", grouped(source.token_count()),
                  "computed: " + (source.format() == TokenFormat::text
                                      ? "bytes of " + files + ", one more after each"
                                      : files + ", " + to_string(source.format()))});
  rows.push_back({"samples per epoch", grouped(epoch), "computed: tokens / seq-len"});
  rows.push_back({"tokens per step", grouped(plan.batch_size * plan.model.context),
                  "computed: batch-size x seq-len"});
  rows.push_back({"epochs", epochs, "computed: steps x batch-size / samples per epoch"});
  rows.push_back({"rank", std::to_string(env.rank), env.origin});
  if (env.world_size > 1)
    rows.push_back({"master", env.master_addr + ":" + std::to_string(env.master_port), env.origin});
  rows.push_back({"attempt", std::to_string(env.attempt), env.origin});
  rows.push_back({"checkpoints",
                  (std::filesystem::path(plan.out) / checkpoint_name(plan.schedule.steps)).string(),
                  plan.save_every > 0 ? "computed: each " + std::to_string(plan.save_every) +
                                            " steps and at the end"
                                      : "computed: at the end"});
  return rows;
}

/// The device and what carries the collectives, for the table.
std::vector<Setting> place_settings(const Accelerator& accelerator, const Joined& joined) {
  std::vector<Setting> rows{
      {"computes on",
       accelerator.gpu() ? "cuda:" + std::to_string(accelerator.device) : std::string("cpu"),
       accelerator.gpu() ? accelerator.text : "computed"}};
  rows.insert(rows.end(), joined.network.begin(), joined.network.end());
  return rows;
}

std::string join_line(const ProcessEnv& env, double seconds) {
  char took[32];
  std::snprintf(took, sizeof took, "%.1f s", seconds);
  const std::string master =
      env.world_size == 1 ? "no master: a single rank"
                          : "master " + env.master_addr + ":" + std::to_string(env.master_port);
  return "rank " + std::to_string(env.rank) + "/" + std::to_string(env.world_size) + " joined in " +
         took + " on node " + env.node_name + " (" + master + ")";
}

Result<Accelerator> accelerator_for(const TrainPlan& plan, const ProcessEnv& env) {
  return find_accelerator({.choice = plan.device,
                           .visible_gpus = visible_gpus(process_env),
                           .local_rank = env.local_rank,
                           .place = {.plugin = default_nccl_plugin(), .libtorch = TORCH_VERSION}});
}

int run(TrainPlan plan, const ProcessEnv& env) {
  const auto found = accelerator_for(plan, env);
  const Accelerator accelerator = found ? *found : Accelerator{.text = describe(found.error())};
  plan.gpu = accelerator.gpu();
  const auto threads = choose_threads(plan, env);
  Inputs inputs = open_inputs(plan, env);
  if (!found) inputs.failure = bad_config(found.error());
  const milliseconds patience = plan.rendezvous_timeout;
  const auto begun = steady_clock::now();
  PhaseClock clock;
  auto met = rendezvous(env, accelerator, clock,
                        inputs.failure ? std::min(patience, kRendezvousAfterFailure) : patience);
  if (const auto* const failure = std::get_if<Failure>(&met))
    return fail(inputs.failure.value_or(*failure), env, {});
  catch_stop_signals();  // from here on a rank that stops tells the others
  const auto& joined = std::get<Joined>(met);
  auto& communicator = *joined.communicator;
  LoopEnd end;
  try {
    say(join_line(env, duration<double>(steady_clock::now() - begun).count()));
    if (env.rank == 0) say(joined.collectives);
    end.failure = agree(communicator, inputs.failure);
    if (!end.failure) {
      const auto sharing = prove_sharing(communicator, plan.out, env.node_name);
      auto rows = all_settings(plan, env, *inputs.source);
      rows.push_back(sharing.setting);
      if (threads) rows.push_back(*threads);
      for (auto& row : place_settings(accelerator, joined)) rows.push_back(std::move(row));
      if (env.rank == 0) say(render_settings(rows));
      end = train({.plan = plan,
                   .source = *inputs.source,
                   .communicator = communicator,
                   .sharing = sharing,
                   .clock = clock});
    }
  } catch (const PeerLostError& lost) {
    end = {.failure = peer_lost(lost), .is_agreed = false};
  }
  if (end.is_agreed) communicator.finish();
  if (end.failure) return fail(*end.failure, env, end.last_step);
  return exit_code::kDone;
}

/// Each step asks for the same large blocks again. As the allocator comes they go back to the
/// kernel each time, which then fills them with zeros page by page: nearly half of the time of a
/// small model.
void keep_freed_memory() {
  constexpr int kTopPadBytes = 64 << 20;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  ::mallopt(M_TOP_PAD, kTopPadBytes);
}

}  // namespace

int run_engine(int argc, const char* const* argv) {
  keep_freed_memory();
  end_at_stop_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of write(), with a message
  const auto parsed = parse_train_flags(argc, argv);
  ProcessEnv env;
  if (!parsed) {
    return fail(
        {.exit_code = exit_code::kUsage, .reason = "BadUsage", .message = describe(parsed.error())},
        env, {});
  }
  if (parsed->help) {
    say(*parsed->help);
    return exit_code::kDone;
  }
  const auto found = process_env_from(process_env, this_host());
  if (!found) return fail(bad_config(found.error()), env, {});
  env = *found;
  introduce_for_stop(env);
  const auto init = read_init(parsed->flags);
  if (!init) return fail(bad_init(init.error()), env, {});
  const auto plan = make_plan(parsed->flags, env.world_size, *init);
  if (!plan) return fail(bad_config(plan.error()), env, {});
  try {
    return run(*plan, env);
  } catch (const std::exception& failure) {
    return fail(
        {.exit_code = exit_code::kInternal, .reason = "Internal", .message = failure.what()}, env,
        {});
  }
}

}  // namespace tj::trainer
