#include "trainer/train/engine.h"

#include <malloc.h>
#include <torch/torch.h>

#include <torch/version.h>

#include <algorithm>
#include <csignal>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "trainer/check/nccl_lint.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/comm/accelerator.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/rendezvous.h"
#include "trainer/data/token_samples.h"
#include "trainer/launch/host.h"
#include "trainer/launch/process_identity.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/ending.h"
#include "trainer/process/last_words.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/report/progress.h"
#include "trainer/train/deepspeed_config.h"
#include "trainer/train/loop.h"
#include "trainer/train/plan_workload.h"
#include "trainer/train/report_options.h"

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
  std::optional<TokenSource> eval_source;
  std::optional<Failure> failure;
};

/// Only the operator has attempts that may outlive each other; of a job it says the name.
OutClaim claim_of(const ProcessEnv& env) {
  if (!process_env(names::kEnvJobName)) return {};
  return {.job_uid = env.job_uid, .attempt = env.attempt};
}

std::optional<Failure> claim(const TrainPlan& plan, const ProcessEnv& env) {
  const auto claimed = claim_out(plan.out, claim_of(env));
  if (claimed) return std::nullopt;
  return out_failure(claimed.error(), "OutNotWritable", describe(claimed.error()));
}

std::optional<Failure> check_out(const TrainPlan& plan, const ProcessEnv& env) {
  if (const auto prepared = prepare_out_folder(plan.out); !prepared) {
    return Failure{.exit_code = exit_code::kInputOutput,
                   .reason = "OutNotWritable",
                   .message = describe(prepared.error())};
  }
  const auto names = checkpoint_names(plan.out);
  if (plan.resume || names.empty()) return claim(plan, env);
  return Failure{.exit_code = exit_code::kBadConfig,
                 .reason = "OutInUse",
                 .message = "--out " + plan.out + " already holds " + names.front() +
                            "; --resume goes on from it, or another folder is needed"};
}

Failure bad_data(const std::string& message) {
  return {.exit_code = exit_code::kBadData, .reason = "BadData", .message = message};
}

std::optional<Failure> check_length(const std::string& name, const TokenSource& source,
                                    const TrainPlan& plan) {
  const std::int64_t needed = plan.model.context + 1;
  if (source.token_count() >= needed) return std::nullopt;
  return bad_data(name + ": holds " + grouped(source.token_count()) + " tokens in " +
                  std::to_string(source.file_count()) + " files; one sequence of --seq-len " +
                  std::to_string(plan.model.context) + " needs " + grouped(needed));
}

/// Opens the data, and completes the plan by what it says.
std::optional<Failure> open_data(TrainPlan& plan, Inputs& inputs) {
  auto source = TokenSource::open(plan.data, "--data");
  if (!source) return bad_data(describe(source.error()));
  if (const auto settled = settle_vocabulary(plan, source->vocabulary()); !settled)
    return bad_config(settled.error());
  source->require_ids_below(source->vocabulary() > 0 ? source->vocabulary()
                                                     : plan.model.vocabulary);
  inputs.source.emplace(std::move(*source));
  return check_length("--data " + plan.data.front(), *inputs.source, plan);
}

std::optional<Failure> open_eval_data(const TrainPlan& plan, Inputs& inputs) {
  if (plan.eval_data.empty()) return std::nullopt;
  auto source = TokenSource::open(plan.eval_data, "--eval-data");
  if (!source) return bad_data(describe(source.error()));
  const std::string name = "--eval-data " + plan.eval_data.front();
  if (source->vocabulary() > plan.model.vocabulary) {
    return bad_data(name + ": is of a vocabulary of " + std::to_string(source->vocabulary()) +
                    "; the model's is " + std::to_string(plan.model.vocabulary));
  }
  source->require_ids_below(plan.model.vocabulary);
  inputs.eval_source.emplace(std::move(*source));
  return check_length(name, *inputs.eval_source, plan);
}

Inputs open_inputs(TrainPlan& plan, const ProcessEnv& env) {
  Inputs inputs;
  inputs.failure = open_data(plan, inputs);
  if (!inputs.failure) inputs.failure = open_eval_data(plan, inputs);
  if (!inputs.failure && env.rank == 0) inputs.failure = check_out(plan, env);
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
  const std::int64_t epoch = TokenSamples(source, plan.model.context).sample_count();
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

/// What a library threw. Of torch's texts the first line is the cause, the rest a stack.
Failure thrown(const std::exception& exception, const TrainPlan& plan) {
  std::string what = exception.what();
  what = what.substr(0, what.find('\n'));
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                         what.find("can't allocate memory") != std::string::npos ||
                         what.find("out of memory") != std::string::npos;
  if (!is_memory) return {.message = what};
  return {.reason = "OutOfMemory",
          .message = "out of memory with --accumulation " + std::to_string(plan.accumulation) +
                     " (" + std::to_string(plan.micro_batch) + " sequences in a pass); " +
                     std::to_string(plan.accumulation * 2) +
                     (plan.recompute ? "" : " or --recompute") + " takes less: " + what};
}

struct JoinedRun {
  const TrainPlan& plan;
  const ProcessEnv& env;
  const Inputs& inputs;
  const Accelerator& accelerator;
  const std::optional<Setting>& threads;
  const Joined& joined;
  PhaseClock& clock;
  Reporter& reporter;
};

LoopEnd train_joined(const JoinedRun& run) {
  auto& communicator = *run.joined.communicator;
  try {
    if (auto failure = agree(communicator, run.inputs.failure)) return {.failure = failure};
    const auto sharing =
        prove_sharing(communicator, run.plan.out, claim_of(run.env), run.env.node_name);
    auto rows = all_settings(run.plan, run.env, *run.inputs.source);
    rows.push_back(sharing.setting);
    if (run.threads) rows.push_back(*run.threads);
    for (auto& row : place_settings(run.accelerator, run.joined)) rows.push_back(std::move(row));
    for (const auto& note : run.env.rank == 0 ? run.plan.notes : std::vector<std::string>())
      say(note);
    run.reporter.begin(std::move(rows));
    const auto context = run.plan.model.context;
    const TokenSamples source(*run.inputs.source, context);
    std::optional<TokenSamples> eval_source;
    if (run.inputs.eval_source) eval_source.emplace(*run.inputs.eval_source, context);
    const auto workload = workload_of(run.plan);
    return train({.plan = run.plan,
                  .workload = workload,
                  .source = source,
                  .data_tokens = run.inputs.source->token_count(),
                  .eval_source = eval_source ? &*eval_source : nullptr,
                  .communicator = communicator,
                  .sharing = sharing,
                  .claim = claim_of(run.env),
                  .clock = run.clock,
                  .reporter = run.reporter});
  } catch (const PeerLostError& lost) {
    return {.failure = peer_lost(lost), .is_agreed = false};
  } catch (const std::exception& exception) {
    return {.failure = thrown(exception, run.plan),
            .last_step = run.clock.seen().step,
            .is_agreed = false};
  }
}

/// What NCCL's variables do that their user may not expect; without a GPU nothing reads them.
void lint_variables(const Accelerator& accelerator, const ProcessEnv& env) {
  if (!accelerator.gpu() || env.local_rank != 0) return;
  for (const auto& line : lint_lines(process_variables(), lint_facts())) say_error(line);
}

/// The operator's last look may have been seconds ago: the last step is told by the last words.
void say_finished(const LoopEnd& end, const ProcessEnv& env) {
  write_last_words({.reason = "Finished",
                    .message = "finished " + std::to_string(end.last_step) + " steps",
                    .rank = env.rank,
                    .step = end.last_step,
                    .attempt = env.attempt});
}

[[noreturn]] void run(TrainPlan plan, const ProcessEnv& env) {
  const auto found = accelerator_for(plan, env);
  const Accelerator accelerator = found ? *found : Accelerator{.text = describe(found.error())};
  const auto settled = settle_device(plan, accelerator.gpu());
  lint_variables(accelerator, env);
  const auto threads = choose_threads(plan, env);
  Inputs inputs = open_inputs(plan, env);
  if (!found) inputs.failure = bad_config(found.error());
  if (!settled) inputs.failure = bad_config(settled.error());
  const milliseconds patience = plan.rendezvous_timeout;
  const auto begun = steady_clock::now();
  PhaseClock clock;
  Reporter reporter(report_options(plan), env, clock);
  const WatchRequest watch{
      .clock = clock, .limits = plan.limits, .write_down = [&reporter](const Failure& failure) {
        reporter.end(failure);
      }};
  auto met = rendezvous(env, accelerator, watch,
                        inputs.failure ? std::min(patience, kRendezvousAfterFailure) : patience);
  if (const auto* const unmet = std::get_if<Failure>(&met)) {
    const Failure failure = inputs.failure.value_or(*unmet);
    end_process(failure.exit_code, [&] { end_with(failure, env, {}); });
  }
  catch_stop_signals();  // from here on a rank that stops tells the others
  auto& joined = std::get<Joined>(met);
  say(join_line(env, duration<double>(steady_clock::now() - begun).count()));
  if (env.rank == 0) say(joined.collectives);
  reporter.watch([&joined] { return joined.watchdog->stalled(); });
  const LoopEnd end = train_joined({.plan = plan,
                                    .env = env,
                                    .inputs = inputs,
                                    .accelerator = accelerator,
                                    .threads = threads,
                                    .joined = joined,
                                    .clock = clock,
                                    .reporter = reporter});
  const bool is_own =
      end.failure && !end.is_agreed && end.failure->exit_code != exit_code::kPeerLost;
  if (is_own) joined.watchdog->tell(*end.failure);
  end_process(end.failure ? end.failure->exit_code : exit_code::kDone, [&] {
    clock.enter(Phase::end);
    joined.watchdog->stop();
    if (end.is_agreed) joined.communicator->finish();
    reporter.end(end.failure);
    if (end.failure) {
      end_with(*end.failure, env, end.last_step);
    } else {
      say_finished(end, env);
    }
  });
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
    return end_with(
        {.exit_code = exit_code::kUsage, .reason = "BadUsage", .message = describe(parsed.error())},
        env, {});
  }
  if (parsed->help) {
    say(*parsed->help);
    return exit_code::kDone;
  }
  const auto found = process_env_from(process_env, this_host());
  if (!found) return end_with(bad_config(found.error()), env, {});
  env = *found;
  introduce_for_stop(env);
  const auto chosen = choose_flags(parsed->flags, env.world_size);
  if (!chosen) return end_with(bad_config(chosen.error()), env, {});
  const auto init = read_init(chosen->flags);
  if (!init) return end_with(bad_init(init.error()), env, {});
  auto plan = make_plan(chosen->flags, env.world_size, *init);
  if (!plan) return end_with(bad_config(plan.error()), env, {});
  name_origin(plan->settings, chosen->of_file);
  plan->notes = chosen->notes;
  try {
    run(*plan, env);
  } catch (const std::exception& failure) {
    return end_with(
        {.exit_code = exit_code::kInternal, .reason = "Internal", .message = failure.what()}, env,
        {});
  }
}

}  // namespace tj::trainer
