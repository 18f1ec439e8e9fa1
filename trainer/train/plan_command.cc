#include "trainer/train/plan_command.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "trainer/check/measure.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/rendezvous.h"
#include "trainer/launch/host.h"
#include "trainer/process/durable_file.h"
#include "trainer/process/ending.h"
#include "trainer/process/heap.h"
#include "trainer/process/lines.h"
#include "trainer/train/flags.h"
#include "trainer/train/memory_advice.h"
#include "trainer/train/pass_probe.h"
#include "trainer/train/plan_ask.h"
#include "trainer/train/plan_request.h"
#include "trainer/train/process_setup.h"
#include "trainer/train/rank_room.h"

namespace tj::trainer {
namespace {

constexpr std::chrono::seconds kMeetingMax{60};
constexpr double kStandstillMaxS = 300;  // a rank may still run its passes

RankRoom room_of(const Asked& asked) {
  if (asked.request.gpu_bytes) return {asked.request.gpu_bytes, asked.request.gpu_origin};
  return rank_room({.gpu = asked.plan.gpu,
                    .gpu_name = asked.accelerator.text,
                    .env = asked.env,
                    .process_bytes = asked.process_bytes});
}

/// For passes that are run here: of a GPU its own.
double probe_bytes(const Asked& asked) {
  const auto room =
      rank_room({.gpu = asked.plan.gpu, .gpu_name = asked.accelerator.text, .env = asked.env});
  return asked.plan.gpu && room.bytes ? *room.bytes : free_bytes(asked.env);
}

/// A CPU shows what a GPU would take only roughly: its kernels are others, and its precision.
bool trusts_formula(const Asked& asked, const ForecastInputs& inputs) {
  return asked.request.gpu_bytes && !asked.plan.gpu && inputs.memory.activation_bytes;
}

void use_probe(const Asked& asked, const PassProbe& probe, ForecastInputs& inputs) {
  inputs.gradients = probe.gradients;
  if (!asked.request.gpu_bytes) inputs.memory.scratch_bytes = probe.scratch_bytes;
  if (trusts_formula(asked, inputs)) return;
  inputs.memory.activation_bytes = probe.activation_bytes;
  inputs.memory.cast_bytes = 0;              // was measured, too
  inputs.memory_room.can_recompute = false;  // its share is measured, too
  const bool is_whole = probe.samples >= asked.plan.micro_batch;
  inputs.activations_origin =
      "measured here, by passes of " +
      std::to_string(std::min(probe.samples, asked.plan.micro_batch)) +
      (is_whole ? " samples"
                : " samples and fewer, carried on to " + std::to_string(asked.plan.micro_batch));
}

/// Computing and memory, by passes where they are not given.
std::optional<Failure> measure_passes(const Asked& asked, ForecastInputs& inputs) {
  const auto given = given_compute(asked.request, asked.plan, *asked.workload);
  inputs.step.compute = given.value_or(ComputeTime{});
  inputs.compute_origin = asked.request.step_seconds ? "--step-seconds"
                          : given                    ? "--tflops, backward two thirds of a pass"
                                                     : "measured here";
  if (!asked.request.gpu_bytes && !asked.plan.gpu)
    inputs.memory.process_bytes = asked.process_bytes;
  const bool has_formula = inputs.memory.activation_bytes.has_value();
  if (!has_formula) inputs.activations_origin = "not known, and not in it: no pass was run here";
  if (!asked.request.runs_passes) return std::nullopt;
  const auto probe = probe_passes({.plan = asked.plan,
                                   .workload = *asked.workload,
                                   .source = *asked.source,
                                   .seconds_max = asked.request.pass_seconds_max,
                                   .memory_bytes = probe_bytes(asked),
                                   .measures_time = !given});
  if (!probe) {
    if (!has_formula)
      inputs.activations_origin = "not known, and not in it: " + describe(probe.error());
    if (given) return std::nullopt;
    return Failure{.exit_code = exit_code::kBadConfig,
                   .reason = "TooLarge",
                   .message = describe(probe.error()) +
                              "; --step-seconds or --tflops says how fast it computes"};
  }
  if (!given) inputs.step.compute = probe->compute;
  use_probe(asked, *probe, inputs);
  return std::nullopt;
}

/// Collective. The slowest rank is the one that all wait for.
void take_slowest(Communicator& communicator, ComputeTime& compute) {
  const auto ranks = static_cast<std::size_t>(communicator.world_size());
  const auto self = static_cast<std::size_t>(communicator.rank());
  std::vector<double> seconds(3 * ranks);
  seconds[3 * self] = compute.forward_s;
  seconds[3 * self + 1] = compute.backward_s;
  seconds[3 * self + 2] = compute.update_s;
  seconds = sum_over_ranks(communicator, seconds);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const ComputeTime other{seconds[3 * rank], seconds[3 * rank + 1], seconds[3 * rank + 2]};
    if (other.of_step(1) > compute.of_step(1)) compute = other;
  }
}

/// Of a core that computes, for a byte on the wire. A core that computes nothing takes it over
/// where there is one.
double core_seconds_per_byte(const LinkFacts& facts, const ProcessEnv& env) {
  const double sent_bytes = facts.bytes_per_second() * facts.all_reduce_s;
  const int spare = usable_cores() - at::get_num_threads() * env.local_world_size;
  return spare > 0 || sent_bytes <= 0 ? 0 : facts.all_reduce_core_s / sent_bytes;
}

/// Collective. The rate of an all-reduce of a bucket, without its hops, and half of a round trip.
Link measured_link(Communicator& communicator, const Accelerator& accelerator,
                   const ProcessEnv& env) {
  LinkFacts facts;
  facts.ranks_per_worker = 1;
  facts.workers.resize(static_cast<std::size_t>(env.world_size));
  measure_links(communicator, accelerator, facts);
  double latency_s = 0;
  for (const auto& rank : facts.ranks) latency_s = std::max(latency_s, rank.round_trip_s / 2);
  const double hops_s = 2.0 * (env.world_size - 1) * latency_s;
  const double core_s_per_byte = accelerator.gpu() ? 0 : core_seconds_per_byte(facts, env);
  if (facts.all_reduce_s > hops_s) facts.all_reduce_s -= hops_s;
  return {.bytes_per_second = facts.bytes_per_second(),
          .latency_s = latency_s,
          .core_s_per_byte = core_s_per_byte};
}

/// With the other ranks. Only rank 0 goes on to print.
std::optional<Failure> measure_together(const Asked& asked, ForecastInputs& inputs) {
  if (asked.env.world_size == 1)
    return bad_config(Error{
        .code = Code::invalid,
        .message = "measures between ranks: `trainer launch -- trainer plan --probe` on all nodes "
                   "starts them; a rate that is known is given with --link",
        .subject = "--probe"});
  PhaseClock clock;
  const Limits limits{.start = kStandstillMaxS};
  auto met = rendezvous(asked.env, asked.accelerator, {.clock = clock, .limits = limits},
                        {.timeout = kMeetingMax});
  if (const auto* const failure = std::get_if<Failure>(&met)) return *failure;
  auto& joined = std::get<Joined>(met);
  auto& communicator = *joined.communicator;
  inputs.step.link = measured_link(communicator, asked.accelerator, asked.env);
  inputs.link_origin = "measured between " + std::to_string(asked.env.world_size) + " ranks";
  auto failure = agree(communicator, measure_passes(asked, inputs));
  if (!failure) take_slowest(communicator, inputs.step.compute);
  joined.watchdog->stop();
  communicator.finish();
  return failure;
}

std::optional<Failure> write_picture(const std::string& path, const Forecast& forecast) {
  if (path.empty()) return std::nullopt;
  const auto written = write_durably(path, forecast_picture(forecast));
  if (written) return std::nullopt;
  return Failure{.exit_code = exit_code::kInputOutput,
                 .reason = "NotWritable",
                 .message = "--svg: " + describe(written.error())};
}

/// Of the activations, what is left of them with --recompute; 0: the model knows no such flag.
double recompute_share(const Choice& choice, Flags flags, double activation_bytes) {
  flags["--recompute"] = "true";
  const auto asked = ask(choice, flags);
  if (asked.failure) return 0;
  const auto probe = probe_passes({.plan = asked.plan,
                                   .workload = *asked.workload,
                                   .source = *asked.source,
                                   .memory_bytes = probe_bytes(asked),
                                   .measures_time = false});
  return probe ? std::min(1.0, probe->activation_bytes / activation_bytes) : 0;
}

/// Where it does not fit it is tried whether --recompute would help.
Forecast forecast_with(const Choice& choice, const Flags& flags, ForecastInputs inputs) {
  auto forecast = forecast_of(inputs);
  const double activations = inputs.memory.activation_bytes.value_or(0);
  const bool is_known = inputs.memory_room.can_recompute || flags.contains("--recompute");
  if (forecast.fits || activations == 0 || is_known) return forecast;
  const double share = recompute_share(choice, flags, activations);
  if (share == 0) return forecast;
  inputs.memory_room.can_recompute = true;
  inputs.memory_room.recompute_share = share;
  return forecast_of(std::move(inputs));
}

std::optional<Failure> measure(const Asked& asked, ForecastInputs& inputs) {
  if (asked.request.probes_link) return measure_together(asked, inputs);
  inputs.step.link = {.bytes_per_second = asked.request.link_bytes_per_second.value_or(1),
                      .latency_s = asked.request.latency_s};
  inputs.link_origin = "--link " + asked.request.link_text;
  return measure_passes(asked, inputs);
}

std::optional<Failure> answer(const Choice& choice, const Flags& flags) {
  const auto asked = ask(choice, flags);
  if (asked.failure) return asked.failure;
  auto inputs = forecast_inputs(asked.request, asked.plan, *asked.workload);
  if (auto failure = measure(asked, inputs)) return failure;
  if (asked.request.probes_link && asked.env.rank != 0) return std::nullopt;
  inputs.room = room_of(asked);
  auto forecast = forecast_with(choice, flags, std::move(inputs));
  if (!forecast.fits) {
    auto shortage = shortage_of({.request = asked.request,
                                 .plan = asked.plan,
                                 .workload = *asked.workload,
                                 .room = forecast.inputs.room,
                                 .process_bytes = asked.process_bytes});
    if (shortage) forecast.remedies = std::move(shortage->remedies);
  }
  if (auto failure = write_picture(asked.request.svg, forecast)) return failure;
  const std::string text =
      asked.request.is_json ? forecast_json(forecast).dump(2) + "\n" : forecast_text(forecast);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return std::nullopt;
}

/// A plan is a process alone unless it measures.
int fail(const Failure& failure) { return end_with(failure, ProcessEnv{}, {}); }

}  // namespace

int run_plan(int argc, const char* const* argv, Registry registry) {
  keep_freed_memory();
  const auto choice = choose_workload(registry, model_flag(argc, argv));
  if (!choice) return fail(bad_config(choice.error()));
  const auto parsed = parse_plan_flags(argc, argv, *choice->entry, plan_flags());
  if (!parsed)
    return fail({.exit_code = exit_code::kUsage,
                 .reason = "BadUsage",
                 .message = describe(parsed.error())});
  if (parsed->shown) {
    say(*parsed->shown);
    return exit_code::kDone;
  }
  try {
    const auto failure = answer(*choice, parsed->flags);
    return failure ? fail(*failure) : exit_code::kDone;
  } catch (const PeerLostError& lost) {
    return fail(peer_lost(lost));
  } catch (const BadDataError& bad) {
    return fail(bad_data(bad));
  } catch (const std::exception& exception) {
    return fail(failure_of(exception));
  }
}

}  // namespace tj::trainer
