#include "trainer/train/plan_request.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "trainer/train/batch_reader.h"
#include "trainer/train/tuning.h"
#include "trainer/train/zero/zero_schedule.h"
#include "trainer/values/byte_size.h"
#include "trainer/workload/flag_reader.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kRanksMax = 100'000;
constexpr double kForwardShare = 1.0 / 3;  // of a pass: backward has twice the matrix products
constexpr double kTera = 1e12;
constexpr double kSecondsMax = 1e6;

constexpr Flag kFlags[] = {
    {.name = "--world",
     .help = "ranks, one for each GPU (what the launch environment says, else 1)"},
    {.name = "--link",
     .help = "what each rank can send: 1gbps, of which TCP carries 94 %, or 117MB/s as it arrives"},
    {.name = "--latency-ms", .help = "one way (0.1)"},
    {.name = "--probe",
     .help = "measure link and computing between the ranks, under trainer launch on all nodes",
     .is_switch = true},
    {.name = "--step-seconds",
     .help = "computing of one optimizer step on a rank: all its passes and the update (measured "
             "here)"},
    {.name = "--tflops", .help = "10^12 FLOP/s that a rank reaches, in place of --step-seconds"},
    {.name = "--no-passes",
     .help = "run no passes here: activations are then not known",
     .is_switch = true},
    {.name = "--pass-seconds", .help = "bound on the passes that are run here (10)"},
    {.name = "--codec-rate",
     .help =
         "CODEC=RATE of float32 gradients that are packed and unpacked, such as int8=2GB/s; may "
         "be given several times",
     .is_repeatable = true},
    {.name = "--target-efficiency", .help = "what the recommended setting must reach (90%)"},
    {.name = "--gpu", .help = "the GPU that is planned for, such as H100: its memory"},
    {.name = "--gpu-memory", .help = "the same by its size, such as 80GiB"},
    {.name = "--json", .help = "one JSON document instead of tables", .is_switch = true},
    {.name = "--svg", .help = "file for a picture: efficiency over passes, a line for each codec"},
};

/// Flags that others add to `trainer train`; none of them is missed where it does not exist.
constexpr const char* kReduce = "--reduce";
constexpr const char* kReduceRank = "--reduce-rank";

/// "90%" or "0.9".
std::optional<double> target_from(std::string text) {
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end) / (is_percent ? 100 : 1);
  if (text.empty() || *end != '\0' || !(value > 0 && value < 1)) return std::nullopt;
  return value;
}

std::optional<std::pair<Codec, double>> codec_rate_from(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const auto codec = codec_from(text.substr(0, equals));
  const auto rate = link_rate_from(text.substr(equals + 1));
  if (!codec || !rate) return std::nullopt;
  return std::pair(*codec, *rate);
}

void read_link(FlagReader& reader, PlanRequest& request) {
  request.probes_link = reader.is_set("--probe");
  request.latency_s = reader.real("--latency-ms", {.value = "0.1"}, {0, kSecondsMax},
                                  "it must be a number from 0") /
                      1e3;
  if (!reader.is_given("--link")) {
    if (request.ranks > 1 && !request.probes_link)
      reader.fail({.code = Code::invalid,
                   .message = std::string("is missing: give ") + kLinkRule +
                              ", or measure it with --probe under trainer launch",
                   .subject = "--link"});
    return;
  }
  request.link_text = reader.given("--link");
  request.link_bytes_per_second = reader.choice("--link", "1gbps", kLinkRule, link_rate_from);
  if (request.probes_link)
    reader.fail("--probe", "true", "it must go where --link says the rate, or --link must");
}

void read_compute(FlagReader& reader, PlanRequest& request) {
  const auto positive = [&](const char* name, double max) -> std::optional<double> {
    if (!reader.is_given(name)) return std::nullopt;
    return reader.real(name, {.value = ""}, {std::numeric_limits<double>::denorm_min(), max},
                       "it must be a number greater than 0");
  };
  request.step_seconds = positive("--step-seconds", kSecondsMax);
  request.tflops = positive("--tflops", kSecondsMax);
  if (request.step_seconds && request.tflops)
    reader.fail("--tflops", reader.given("--tflops"), "--step-seconds says it already");
  request.runs_passes = !reader.is_set("--no-passes");
  if (!request.runs_passes && !request.step_seconds && !request.tflops)
    reader.fail("--no-passes", "true", "it needs --step-seconds or --tflops");
  request.pass_seconds_max = reader.real("--pass-seconds", {.value = "10"}, {0, kSecondsMax},
                                         "it must be a number from 0");
}

void read_codec(FlagReader& reader, PlanRequest& request) {
  request.codec = reader.choice(kReduce, "fp32", "fp32, bf16, fp16, int8 or powersgd", codec_from);
  request.powersgd_rank = static_cast<int>(reader.whole(
      kReduceRank, {.value = std::to_string(kReduceRankDefault)}, {1, kReduceRankMax}));
  if (!reader.is_given("--codec-rate")) return;
  for (const auto& text : reader.names("--codec-rate")) {
    const auto rate = codec_rate_from(text);
    if (!rate) {
      reader.fail("--codec-rate", text, "it must be a codec and a rate, such as int8=2GB/s");
    } else {
      request.codec_rates.push_back(*rate);
    }
  }
}

void read_gpu(FlagReader& reader, PlanRequest& request) {
  if (reader.is_given("--gpu-memory")) {
    request.gpu_bytes =
        static_cast<double>(reader.choice("--gpu-memory", "80GiB", kByteSizeRule, byte_size_from));
    request.gpu_origin = "of a GPU (--gpu-memory)";
    return;
  }
  if (!reader.is_given("--gpu")) return;
  std::string names;
  for (const auto& kind : gpu_kinds())
    names += (names.empty() ? "" : ", ") + std::string(kind.name);
  const auto kind =
      reader.choice("--gpu", "H100", "one of " + names + "; of others --gpu-memory says it",
                    [](const std::string& name) { return gpu_kind_named(name); });
  request.gpu_bytes = usable_bytes(kind);
  request.gpu_origin = "that can be used of one " + std::string(kind.name);
}

std::int64_t largest_block(const std::vector<ModelBlock>& blocks,
                           const std::vector<TensorSpec>& tensors) {
  std::int64_t largest = 0;
  for (const auto& block : blocks) {
    std::int64_t elements = 0;
    for (const auto tensor : block.tensors)
      if (tensors[tensor].kind == TensorKind::trained) elements += element_count(tensors[tensor]);
    largest = std::max(largest, elements);
  }
  return largest;
}

/// What the options of ZeRO-3 gather, and what they would by default.
struct Gathered {
  GatheredElements now, by_default;
  double share() const {
    if (by_default.of_step == 0) return 1;
    return static_cast<double>(now.of_step) / static_cast<double>(by_default.of_step);
  }
  std::int64_t more_at_once() const {
    return std::max<std::int64_t>(0, now.at_once - by_default.at_once);
  }
};

Gathered gathered_of(const TrainPlan& plan, const Workload& workload) {
  if (plan.zero.stage < 3) return {};
  std::vector<std::int64_t> sizes;
  for (const auto& tensor : tensors_of(plan, workload))
    sizes.push_back(tensor.kind == TensorKind::trained ? element_count(tensor) : 0);
  const auto blocks = blocks_of(plan, workload);
  const auto of = [&](const ZeroOptions& options) {
    const auto units = plan_units(sizes, blocks, options);
    return gathered_elements(units, plan_steps(units, blocks, options), plan.accumulation);
  };
  return {.now = of(plan.zero), .by_default = of({.stage = 3, .persist = plan.zero.persist})};
}

std::vector<Gradient> gradients_of(const TrainPlan& plan, const Workload& workload) {
  const auto tensors = tensors_of(plan, workload);
  std::vector<PlannedTensor> planned;
  for (const auto& tensor : tensors)
    planned.push_back({.shape = tensor.shape, .is_trained = tensor.kind == TensorKind::trained});
  std::vector<PlannedBlock> blocks;
  for (const auto& block : blocks_of(plan, workload)) blocks.push_back(block.tensors);
  return gradients_by_blocks(planned, blocks);
}

struct ActivationBytes {
  std::optional<double> at_all_stages;
  double more_without_zero = 0;
};

/// A run of logical shards keeps float32 weights at each stage of ZeRO.
ActivationBytes activations_of(PassRule rule, const TrainPlan& plan, const Workload& workload) {
  const bool is_same = rule.precision == Precision::fp32 || plan.logical_shards > 0;
  if (is_same) return {workload.pass_memory(rule).activation_bytes, 0};
  rule.casts_weights = false;
  const auto bytes = workload.pass_memory(rule).activation_bytes;
  rule.casts_weights = true;
  return {bytes, workload.pass_memory(rule).activation_bytes.value_or(0) - bytes.value_or(0)};
}

MemoryInputs memory_inputs(const PlanRequest& request, const TrainPlan& plan,
                           const Workload& workload) {
  constexpr double kGpuContextBytes = 6e8;  // of CUDA, cuDNN and NCCL
  constexpr std::int64_t kFloatBytes = 4;
  const auto tensors = tensors_of(plan, workload);
  const auto rule = pass_rule_of(request, plan);
  auto passes = workload.pass_memory(rule);
  const auto [activation_bytes, cast_bytes] = activations_of(rule, plan, workload);
  MemoryInputs memory{.trained_elements = trained_elements(tensors),
                      .block_elements = largest_block(blocks_of(plan, workload), tensors),
                      .ranks = request.ranks,
                      .zero_stage = plan.zero.stage,
                      .zero_group = plan.zero.group_size,
                      .is_half = rule.precision != Precision::fp32,
                      .sums_passes = plan.accumulation > 1 || rule.precision == Precision::fp16,
                      .has_averages = plan.ema_decay > 0,
                      .activation_bytes = activation_bytes,
                      .cast_bytes = cast_bytes,
                      .held = std::move(passes.held)};
  for (const auto& tensor : tensors)
    if (tensor.kind != TensorKind::trained) memory.other_elements += element_count(tensor);
  for (const auto& target : lora_targets_of(plan, workload))
    if (memory.has_averages) memory.other_elements += element_count(tensors[target.weight]);
  if (const auto remembered = workload.memory())
    memory.other_elements += remembered->rows * remembered->row_bytes / kFloatBytes;
  const std::int64_t batches = 1 + plan.data_threads * kBatchesAheadPerThread;
  memory.data_bytes = static_cast<double>((rule.is_gpu ? 2 : batches) * plan.micro_batch) *
                      static_cast<double>(workload.cost().bytes);
  memory.saves_here = !rule.is_gpu;  // a GPU's copy goes to the host
  if (rule.is_gpu) memory.process_bytes = kGpuContextBytes;
  return memory;
}

/// What a forecast tries in place of the run's own setting.
MemoryRoom memory_room_of(const PlanRequest& request, const TrainPlan& plan,
                          const Workload& workload) {
  auto rule = pass_rule_of(request, plan);
  const auto whole = activations_of(rule, plan, workload);
  MemoryRoom room{.micro_batch = plan.micro_batch, .accumulation = plan.accumulation};
  if (plan.recompute || whole.at_all_stages.value_or(0) <= 0) return room;
  rule.recompute = true;
  const auto recomputed = activations_of(rule, plan, workload);
  room.recompute_share = std::min(1.0, recomputed.at_all_stages.value_or(0) / *whole.at_all_stages);
  room.can_recompute = room.recompute_share > 0;
  room.recompute_cast_bytes = recomputed.more_without_zero;
  return room;
}

}  // namespace

std::span<const Flag> plan_flags() { return kFlags; }

PassRule pass_rule_of(const PlanRequest& request, const TrainPlan& plan) {
  const bool is_planned_for = request.gpu_bytes && !plan.gpu;
  const auto precision =
      is_planned_for && !plan.is_precision_given ? plan.gpu_precision : plan.precision;
  const bool keeps_float32 = plan.zero.stage == 0 || plan.logical_shards > 0;
  return {.samples = plan.micro_batch,
          .precision = precision,
          .recompute = plan.recompute,
          .is_gpu = request.gpu_bytes || plan.gpu,
          .casts_weights = precision != Precision::fp32 && keeps_float32,
          .ranks = request.ranks};
}

Result<PlanRequest> read_plan_request(const Flags& flags, int world_size) {
  FlagReader reader(flags);
  PlanRequest request;
  request.ranks = static_cast<int>(
      reader.whole("--world", {.value = std::to_string(world_size)}, {1, kRanksMax}));
  read_link(reader, request);
  read_compute(reader, request);
  read_codec(reader, request);
  read_gpu(reader, request);
  request.target =
      reader.choice("--target-efficiency", "90%", "a share such as 90% or 0.9", target_from);
  request.is_json = reader.is_set("--json");
  if (reader.is_given("--svg")) request.svg = reader.text("--svg");
  if (reader.error()) return *reader.error();
  return request;
}

Flags train_flags_of(const Flags& flags) {
  Flags train = flags;
  for (const auto& flag : kFlags) train.erase(flag.name);
  train.try_emplace("--data", "none");
  train.try_emplace("--out", ".");
  return train;
}

ForecastInputs forecast_inputs(const PlanRequest& request, const TrainPlan& plan,
                               const Workload& workload) {
  const auto words = workload.words();
  const auto passes = workload.pass_memory(pass_rule_of(request, plan));
  ForecastInputs inputs{.model = plan.model_name,
                        .micro_batch = plan.micro_batch,
                        .steps = plan.schedule.steps,
                        .units_of_sample = words.units,
                        .unit = words.unit.name,
                        .gradients = gradients_of(plan, workload),
                        .codec_rates = request.codec_rates,
                        .target = request.target,
                        .memory = memory_inputs(request, plan, workload),
                        .activations_origin = passes.formula};
  const bool is_half = inputs.memory.is_half;
  const auto gathered = gathered_of(plan, workload);
  const Reduction reduction{.codec = request.codec,
                            .powersgd_rank = request.powersgd_rank,
                            .overlaps = plan.logical_shards == 0};
  inputs.step = {.ranks = request.ranks,
                 .passes = plan.accumulation,
                 .reduction = reduction,
                 .zero_stage = plan.zero.stage,
                 .zero_group = plan.zero.group_size,
                 .weight_bytes = is_half ? 2.0 : 4.0,
                 .gradient_bytes = is_half && !inputs.memory.sums_passes ? 2.0 : 4.0,
                 .frozen_bytes = passes.gathered_bytes,
                 .gathered_share = gathered.share()};
  inputs.memory.reduction = reduction;
  inputs.memory.gathered_elements = gathered.more_at_once();
  inputs.memory_room = memory_room_of(request, plan, workload);
  return inputs;
}

std::optional<ComputeTime> given_compute(const PlanRequest& request, const TrainPlan& plan,
                                         const Workload& workload) {
  const auto passes = static_cast<double>(plan.accumulation);
  double step_s = 0;
  if (request.step_seconds) {
    step_s = *request.step_seconds;
  } else if (request.tflops) {
    step_s = passes * static_cast<double>(plan.micro_batch) * workload.cost().flops /
             (*request.tflops * kTera);
  } else {
    return std::nullopt;
  }
  return ComputeTime{.forward_s = kForwardShare * step_s / passes,
                     .backward_s = (1 - kForwardShare) * step_s / passes};
}

}  // namespace tj::trainer
