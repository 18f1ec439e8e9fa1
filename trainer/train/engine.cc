#include "trainer/train/engine.h"

#include <malloc.h>
#include <torch/types.h>
#include <torch/version.h>

#include <algorithm>
#include <variant>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "trainer/check/nccl_lint.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/comm/accelerator.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/nccl_words.h"
#include "trainer/comm/rendezvous.h"
#include "trainer/launch/host.h"
#include "trainer/launch/process_identity.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/ending.h"
#include "trainer/process/failed_writes.h"
#include "trainer/process/heap.h"
#include "trainer/process/last_words.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/report/progress.h"
#include "trainer/train/agreed_length.h"
#include "trainer/train/chosen_flags.h"
#include "trainer/train/cudnn.h"
#include "trainer/train/flags.h"
#include "trainer/train/loop.h"
#include "trainer/train/memory_advice.h"
#include "trainer/train/pass_probe.h"
#include "trainer/train/plan_request.h"
#include "trainer/train/plugin_kernels.h"
#include "trainer/train/process_setup.h"
#include "trainer/train/rank_room.h"
#include "trainer/train/report_options.h"
#include "trainer/train/run_length.h"
#include "trainer/train/start_phases.h"
#include "trainer/train/start_table.h"
#include "trainer/workload/attention.h"
#include "trainer/workload/autocast.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {
using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// With a failure of our own the others are told, if they are there at all.
constexpr milliseconds kRendezvousAfterFailure{10'000};

struct Inputs {
  std::unique_ptr<SampleSource> data;
  std::unique_ptr<SampleSource> eval_data;  // null: no evaluation
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

/// The GPU on which this process trains, else one by its place among the ranks of this worker.
int gpu_that_reads(const Accelerator& accelerator, const ProcessEnv& env) {
  return accelerator.gpu().value_or(env.local_rank % std::max(1, visible_gpus(process_env)));
}

/// Opens the data, completes plan and workload by what it says, and looks at --out.
Inputs open_inputs(TrainPlan& plan, Workload& workload, const ProcessEnv& env, int device_number) {
  Inputs inputs;
  const auto open = [&](const DataPaths& data) {
    auto opened = workload.open_data(data);
    inputs.failure = std::move(opened.failure);
    return std::move(opened.source);
  };
  inputs.data = open({.flag = "--data", .paths = plan.data, .device_number = device_number});
  if (inputs.failure) return inputs;
  if (const auto settled = settle_evaluation(plan, workload); !settled)
    inputs.failure = bad_config(settled.error());
  const char* const eval_flag = plan.is_eval_chosen ? "--eval-data" : "--data";
  if (!inputs.failure && !plan.eval_data.empty())
    inputs.eval_data = open({.flag = eval_flag,
                             .paths = plan.eval_data,
                             .is_eval = true,
                             .device_number = device_number});
  if (inputs.failure) return inputs;
  if (const auto settled = settle_length(plan, inputs.data->sample_count()); !settled)
    inputs.failure = bad_config(settled.error());
  if (const auto settled = settle_model(plan, workload); !settled)
    inputs.failure = bad_config(settled.error());
  if (!inputs.failure && env.rank == 0) inputs.failure = check_out(plan, env);
  return inputs;
}

/// The device and what carries the collectives, for the table.
std::vector<Setting> place_settings(const TrainPlan& plan, const Accelerator& accelerator,
                                    const Joined& joined) {
  std::vector<Setting> rows{
      {"computes on",
       accelerator.gpu() ? "cuda:" + std::to_string(accelerator.device) : std::string("cpu"),
       accelerator.gpu() ? accelerator.text : "computed"}};
  if (const auto amd = amd_gpus(); amd && !accelerator.gpu())
    rows.push_back(
        {"AMD GPUs", amd_gpus_text(*amd) + " (/dev/kfd)", "not used: " + std::string(kNoRocm)});
  if (accelerator.gpu()) {
    rows.push_back({"attention by",
                    attention_backend(device_of(accelerator.gpu()), type_of(plan.precision)),
                    "computed: the fastest for " + std::string(to_string(plan.precision)) +
                        (plan.adds_in_order ? " that adds in one order" : "")});
    const bool repeats = plan.adds_in_order;
    rows.push_back({"convolutions by",
                    repeats ? "cuDNN, adding in one order" : "the fastest that cuDNN finds",
                    repeats ? "flag" : "default"});
  }
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

struct JoinedRun {
  const TrainPlan& plan;
  const Workload& workload;
  const ProcessEnv& env;
  const Inputs& inputs;
  const Accelerator& accelerator;
  const std::optional<Setting>& threads;
  const Joined& joined;
  PhaseClock& clock;
  Reporter& reporter;
};

/// What a rank has and needs, before its model is there.
struct RankMemory {
  RankRoom room;
  double process_bytes = 0;
};

RankMemory rank_memory(const JoinedRun& run) {
  const double process_bytes = resident_bytes();
  return {.room = rank_room({.gpu = run.plan.gpu,
                             .gpu_name = run.accelerator.text,
                             .env = run.env,
                             .process_bytes = process_bytes}),
          .process_bytes = process_bytes};
}

/// What takes less memory than a run that had none left.
std::string memory_advice(const JoinedRun& run, RankMemory memory, const std::string& told) {
  const auto& plan = run.plan;
  if (const auto capacity = told_capacity(told)) memory.room = {*capacity, "of this GPU"};
  const PlanRequest request{
      .ranks = run.env.world_size, .codec = plan.reduce.codec, .powersgd_rank = plan.reduce.rank};
  const auto shortage = shortage_of({.request = request,
                                     .plan = plan,
                                     .workload = run.workload,
                                     .room = memory.room,
                                     .process_bytes = memory.process_bytes});
  if (shortage) return describe(*shortage);
  return std::to_string(plan.accumulation * 2) + (plan.recompute ? "" : " or --recompute") +
         " takes less";
}

/// What a library threw.
Failure thrown(const std::exception& exception, const JoinedRun& run, const RankMemory& memory) {
  const bool is_nccl = is_of_nccl(exception.what());
  const auto words = nccl_words(exception.what());
  const std::string what = is_nccl ? describe(words) : cause_of(exception);
  if (is_nccl && words.is_of_this_node)
    return {.exit_code = exit_code::kBadConfig, .reason = "NcclFailed", .message = what};
  if (!is_out_of_memory(exception, what)) return {.message = what};
  const auto& plan = run.plan;
  return {.reason = "OutOfMemory",
          .message = "out of memory with --accumulation " + std::to_string(plan.accumulation) +
                     " (" + std::to_string(plan.micro_batch) + " samples in a pass); " +
                     memory_advice(run, memory, what) + ": " + what};
}

LoopEnd train_joined(const JoinedRun& run) {
  auto& communicator = *run.joined.communicator;
  const auto memory = rank_memory(run);
  try {
    if (auto failure = agree(communicator, run.inputs.failure)) return {.failure = failure};
    if (auto failure = agree_on_length(communicator, run.plan)) return {.failure = failure};
    const auto sharing =
        prove_sharing(communicator, run.plan.out, claim_of(run.env), run.env.node_name);
    auto rows = start_table(run.plan, run.workload, *run.inputs.data, run.env);
    rows.push_back(sharing.setting);
    if (run.threads) rows.push_back(*run.threads);
    for (auto& row : place_settings(run.plan, run.accelerator, run.joined))
      rows.push_back(std::move(row));
    for (const auto& note : run.env.rank == 0 ? run.plan.notes : std::vector<std::string>())
      say(note);
    run.reporter.begin(std::move(rows));
    return train({.plan = run.plan,
                  .workload = run.workload,
                  .source = *run.inputs.data,
                  .eval_source = run.inputs.eval_data.get(),
                  .communicator = communicator,
                  .sharing = sharing,
                  .claim = claim_of(run.env),
                  .clock = run.clock,
                  .reporter = run.reporter});
  } catch (const PeerLostError& lost) {
    return {.failure = peer_lost(lost), .is_agreed = false};
  } catch (const BadDataError& bad) {  // frozen weights, which a model reads as it is made
    return {.failure = bad_data(bad), .is_agreed = false};
  } catch (const std::exception& exception) {
    return {.failure = thrown(exception, run, memory),
            .last_step = run.clock.seen().step,
            .is_agreed = false};
  }
}

/// What NCCL's variables do that their user may not expect; without a GPU nobody reads them, and
/// only who hopes for another time limit hears what gives one. Once on each node.
void lint_variables(const Accelerator& accelerator, const ProcessEnv& env) {
  if (env.local_rank != 0) return;
  const auto variables = process_variables();
  const auto lines =
      accelerator.gpu() ? lint_lines(variables, lint_facts()) : timeout_lines(variables);
  for (const auto& line : lines) say_error(line);
}

/// The operator's last look may have been seconds ago: the last step is told by the last words.
void say_finished(const LoopEnd& end, const ProcessEnv& env, const Reporter& reporter) {
  write_last_words({.reason = "Finished",
                    .message = "finished " + std::to_string(end.last_step) + " steps",
                    .rank = env.rank,
                    .step = end.last_step,
                    .attempt = env.attempt,
                    .last_checkpoint = reporter.last_checkpoint()});
}

/// What this rank has before it meets the others.
struct Prepared {
  Accelerator accelerator;
  std::optional<Setting> threads;
  Inputs inputs;
};

Prepared prepare(TrainPlan& plan, Workload& workload, const ProcessEnv& env) {
  const auto found = accelerator_for(plan.device, env);
  Prepared prepared{.accelerator = found ? *found : Accelerator{.text = describe(found.error())},
                    .threads = {},
                    .inputs = {}};
  const auto settled = settle_device(plan, prepared.accelerator);
  lint_variables(prepared.accelerator, env);
  use_kernels_of(prepared.accelerator);
  set_up_cudnn(plan.adds_in_order ? CudnnChoice::in_order : CudnnChoice::by_trying);
  use_attention_in_order(plan.adds_in_order);
  prepared.threads = choose_threads(plan.threads, env);
  prepared.inputs = open_inputs(plan, workload, env, gpu_that_reads(prepared.accelerator, env));
  if (!found) prepared.inputs.failure = bad_config(found.error());
  if (!settled) prepared.inputs.failure = bad_config(settled.error());
  return prepared;
}

EnvironmentWords environment_words(const Prepared& prepared) {
  const auto& [accelerator, threads, inputs] = prepared;
  const std::string place =
      accelerator.gpu() ? "cuda:" + std::to_string(accelerator.device) : "the CPU";
  return {.device = place + " (" + accelerator.text + ")",
          .libtorch = TORCH_VERSION,
          .data = inputs.data ? inputs.data->description() : "none",
          .failure = inputs.failure ? inputs.failure->message : ""};
}

/// The ranks that have met. Where they can't, the process ends.
Joined meet(const TrainPlan& plan, const ProcessEnv& env, const Prepared& prepared,
            const WatchRequest& watch) {
  const auto begun = steady_clock::now();
  const auto& own_failure = prepared.inputs.failure;
  const milliseconds patience = plan.rendezvous_timeout;
  MeetingOptions options{.timeout =
                             own_failure ? std::min(patience, kRendezvousAfterFailure) : patience};
  const bool has_phases = says_phases(plan, env);
  if (has_phases) {
    options.network_chosen = [&](const std::string& collectives) {
      say(other_phase_lines(plan, env, collectives, environment_words(prepared)));
    };
  }
  auto met = rendezvous(env, prepared.accelerator, watch, options);
  if (const auto* const unmet = std::get_if<Failure>(&met)) {
    const Failure failure = own_failure.value_or(*unmet);
    end_process(failure.exit_code, [&] { end_with(failure, env, {}); });
  }
  catch_stop_signals();  // from here on a rank that stops tells the others
  auto& joined = std::get<Joined>(met);
  say(join_line(env, duration<double>(steady_clock::now() - begun).count()));
  if (env.rank == 0 && !has_phases) say(joined.collectives);
  return std::move(joined);
}

[[noreturn]] void end_run(const LoopEnd& end, const ProcessEnv& env, Joined& joined,
                          PhaseClock& clock, Reporter& reporter) {
  const bool is_own =
      end.failure && !end.is_agreed && end.failure->exit_code != exit_code::kPeerLost;
  if (is_own) joined.watchdog->tell(*end.failure);
  end_process(end.failure ? end.failure->exit_code : exit_code::kDone, [&] {
    clock.enter(Phase::end);
    joined.watchdog->stop();
    if (end.is_agreed) joined.communicator->finish();
    reporter.end(end.failure);
    if (end.failure) {
      end_with(*end.failure, env, end.last_step, reporter.last_checkpoint());
    } else {
      say_finished(end, env, reporter);
    }
  });
}

[[noreturn]] void run(TrainPlan& plan, Workload& workload, const ProcessEnv& env) {
  if (says_phases(plan, env)) {
    say(first_phase_lines(env, {.count = visible_gpus(process_env),
                                .visible_devices = process_env("CUDA_VISIBLE_DEVICES")}));
  }
  const Prepared prepared = prepare(plan, workload, env);
  PhaseClock clock;
  Reporter reporter(report_options(plan, workload), env, clock);
  Joined joined =
      meet(plan, env, prepared,
           {.clock = clock, .limits = plan.limits, .write_down = [&reporter](const Failure& why) {
              reporter.end(why);
            }});
  reporter.watch([&joined] { return joined.watchdog->stalled(); });
  const LoopEnd end = train_joined({.plan = plan,
                                    .workload = workload,
                                    .env = env,
                                    .inputs = prepared.inputs,
                                    .accelerator = prepared.accelerator,
                                    .threads = prepared.threads,
                                    .joined = joined,
                                    .clock = clock,
                                    .reporter = reporter});
  end_run(end, env, joined, clock, reporter);
}

/// What the command line says, before anything is looked at.
struct Command {
  Choice choice;
  ParsedFlags parsed;
};

Failure bad_usage(const Error& error) {
  return {.exit_code = exit_code::kUsage, .reason = "BadUsage", .message = describe(error)};
}

std::variant<Command, Failure> command_of(int argc, const char* const* argv, Registry registry) {
  const auto choice = choose_workload(registry, model_flag(argc, argv));
  if (!choice) return bad_config(choice.error());
  auto parsed = parse_train_flags(argc, argv, registry, *choice->entry);
  if (parsed) return Command{.choice = *choice, .parsed = std::move(*parsed)};
  return bad_usage(parsed.error());
}

/// Those that say how the data is read, among what else a training is told: as many ranks as that
/// is for may not be here.
Flags flags_of_data(const Flags& flags, const WorkloadEntry& workload) {
  Flags kept;
  const auto keep = [&](const char* name) {
    if (const auto found = flags.find(name); found != flags.end()) kept.insert(*found);
  };
  keep("--model");
  keep("--data");
  for (const auto& flag : workload.flags) keep(flag.name);
  return train_flags_of(kept);
}

/// In the last words alone: who has asked prints them.
int tell(const Failure& failure) {
  write_last_words({.reason = failure.reason, .message = failure.message, .rank = {}, .step = {}});
  return failure.exit_code;
}

FlagVariables variables_of(const Choice& choice) {
  return {.known = choice.entry->environment,
          .lookup = process_env,
          .batch_size = choice.preset.batch_size};
}

struct Configured {
  std::unique_ptr<Workload> workload;
  TrainPlan plan;
};

std::variant<Configured, Failure> configure(const Choice& choice, const ChosenFlags& chosen,
                                            int world_size) {
  const auto& flags = chosen.flags;
  if (const auto missing = missing_flag(flags, "--data", choice.entry->environment))
    return bad_config(*missing);
  Configured configured{.workload = choice.entry->make(choice.preset), .plan = {}};
  if (const auto init = flags.find("--init-from"); init != flags.end()) {
    if (const auto read = configured.workload->read_init(init->second); !read)
      return bad_init(init->second, read.error());
  }
  auto plan = make_plan(flags, world_size, choice.preset, *configured.workload);
  if (!plan) return bad_config(named_by_variable(plan.error(), chosen.origins));
  configured.plan = std::move(*plan);
  return configured;
}

}  // namespace

int run_engine(int argc, const char* const* argv, Registry registry) {
  keep_freed_memory();
  end_at_stop_signals();
  outlive_file_size_limits();
  ProcessEnv env;
  const auto command = command_of(argc, argv, registry);
  if (const auto* const failure = std::get_if<Failure>(&command))
    return end_with(*failure, env, {});
  const auto& [choice, parsed] = std::get<Command>(command);
  if (parsed.shown) {
    say(*parsed.shown);
    return exit_code::kDone;
  }
  const auto found = process_env_from(process_env, this_host());
  if (!found) return end_with(bad_config(found.error()), env, {});
  env = *found;
  introduce_for_stop(env);
  const auto chosen = choose_flags(parsed.flags, env, variables_of(choice));
  if (!chosen) return end_with(bad_config(chosen.error()), env, {});
  auto configured = configure(choice, *chosen, env.world_size);
  if (const auto* const failure = std::get_if<Failure>(&configured))
    return end_with(*failure, env, {});
  auto& [workload, plan] = std::get<Configured>(configured);
  name_origin(plan.settings, chosen->origins);
  settle_log_style(plan, env);
  plan.notes = chosen->notes;
  try {
    run(plan, *workload, env);
  } catch (const std::exception& failure) {
    return end_with(failure_of(failure), env, {});
  }
}

int describe_data(int argc, const char* const* argv, Registry registry) {
  const auto choice = choose_workload(registry, model_flag(argc, argv));
  if (!choice) return tell(bad_config(choice.error()));
  const auto parsed = parse_plan_flags(argc, argv, *choice->entry, plan_flags());
  if (!parsed) return tell(bad_usage(parsed.error()));
  ChosenFlags chosen{
      .flags = flags_of_data(parsed->flags, *choice->entry), .origins = {}, .notes = {}};
  add_variables(chosen, variables_of(*choice));
  auto configured = configure(*choice, chosen, /*world_size=*/1);
  if (const auto* const failure = std::get_if<Failure>(&configured)) return tell(*failure);
  auto& [workload, plan] = std::get<Configured>(configured);
  const auto opened = workload->open_data({.flag = "--data", .paths = plan.data});
  if (opened.failure) return tell(*opened.failure);
  say(opened.source->description());
  return exit_code::kDone;
}

}  // namespace tj::trainer
