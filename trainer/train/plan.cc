#include "trainer/train/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include "contract/utf8.h"
#include "trainer/train/batch_reader.h"
#include "trainer/train/gpu_config.h"
#include "trainer/train/peak_flops.h"
#include "trainer/train/run_length.h"
#include "trainer/train/tuning.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kRendezvousSecondsMax = 86'400;
constexpr std::int64_t kLogicalShardsMax = 16;  // unless a flag says more
constexpr std::int64_t kThreadsMax = 1024;
constexpr std::int64_t kPortMax = 65'535;
constexpr std::int64_t kZeroStageMax = 3;
constexpr std::int64_t kPersistWidths = 10;  // transformers: integrations/deepspeed.py

using Reader = FlagReader;

Otherwise from_default(std::string value) { return {.value = std::move(value)}; }

void read_evaluation(Reader& reader, TrainPlan& plan) {
  plan.is_eval_chosen = reader.is_given("--eval-data");
  if (plan.is_eval_chosen) {
    plan.eval_data = reader.names("--eval-data");
    const bool is_off = std::ranges::find(plan.eval_data, "none") != plan.eval_data.end();
    if (is_off && plan.eval_data.size() > 1)
      reader.fail("--eval-data", "none", "it must stand alone (of a folder of this name: ./none)");
    if (is_off) plan.eval_data.clear();
  } else {
    reader.note("--eval-data", "none", "default");
  }
  plan.eval_every = reader.whole("--eval-every", from_default("0"), {0, kCountMax});
  plan.eval_batches = reader.whole("--eval-batches", from_default("16"), {1, kCountMax});
}

void read_batch(Reader& reader, const RunConfig& config, int world_size, TrainPlan& plan) {
  const Range<std::int64_t> count{1, kCountMax};
  plan.batch_size = reader.whole("--batch-size", config.batch_size, count);
  plan.accumulation = reader.whole("--accumulation", config.accumulation, count);
  reader.note("world size", std::to_string(world_size), "launch environment");
  if (plan.accumulation > kCountMax / world_size) return;
  const std::int64_t shares = world_size * plan.accumulation;
  plan.micro_batch = plan.batch_size / shares;
  if (plan.batch_size % shares != 0) {
    const std::int64_t nearest = std::max<std::int64_t>(1, plan.micro_batch) * shares;
    reader.fail("--batch-size", std::to_string(plan.batch_size),
                "it must be a multiple of ranks x accumulation = " + std::to_string(world_size) +
                    " x " + std::to_string(plan.accumulation) + " = " + std::to_string(shares) +
                    ", such as " + std::to_string(nearest));
  }
  reader.note("micro-batch", std::to_string(plan.micro_batch),
              "computed: batch-size / world size / accumulation");
}

std::optional<ScheduleKind> schedule_kind_from(const std::string& name) {
  if (name == "cosine") return ScheduleKind::cosine;
  if (name == "linear") return ScheduleKind::linear;
  if (name == "constant") return ScheduleKind::constant;
  return std::nullopt;
}

std::string logical_shards_rule(std::int64_t batch_size) {
  return "it must be a power of two that divides the batch, " + std::to_string(batch_size);
}

/// The same bits on any number of ranks need the same logical shards and as many threads.
void read_determinism(Reader& reader, int world_size, TrainPlan& plan) {
  const bool is_deterministic = reader.is_set("--deterministic");
  if (is_deterministic) {
    plan.adds_in_order = true;
    const auto largest = std::min(kLogicalShardsMax, plan.batch_size & -plan.batch_size);
    plan.logical_shards = reader.whole(
        "--logical-shards", {std::to_string(largest), "computed: largest power of two up to 16"},
        {1, kCountMax});
    const auto count = static_cast<std::uint64_t>(plan.logical_shards);
    if (!std::has_single_bit(count) || plan.batch_size % plan.logical_shards != 0) {
      reader.fail("--logical-shards", std::to_string(plan.logical_shards),
                  logical_shards_rule(plan.batch_size));
    }
    if (plan.logical_shards % (world_size * plan.accumulation) != 0) {
      reader.fail("--accumulation", std::to_string(plan.accumulation),
                  "with --deterministic ranks x accumulation, " + std::to_string(world_size) +
                      " x " + std::to_string(plan.accumulation) +
                      ", must divide the logical shards, " + std::to_string(plan.logical_shards));
    }
  } else if (reader.is_given("--logical-shards")) {
    reader.fail("--logical-shards", reader.given("--logical-shards"), "it needs --deterministic");
  }
  if (!is_deterministic && !reader.is_given("--threads")) return;  // the engine looks at the cores
  plan.threads =
      static_cast<int>(reader.whole("--threads", {"1", "--deterministic"}, {1, kThreadsMax}));
}

/// Groups of one rank share nothing out: plain data parallelism, which has its own ways to overlap.
void read_zero_group(Reader& reader, int world_size, ZeroOptions& zero) {
  constexpr const char* kName = "--zero-group";
  if (!reader.is_given(kName)) {
    if (zero.stage > 0) reader.note("zero-group", "all ranks", "default");
    return;
  }
  if (zero.stage == 0) return reader.fail(kName, reader.given(kName), "it needs --zero 1, 2 or 3");
  const auto size = reader.whole(kName, from_default("1"), {1, kCountMax});
  if (world_size % size != 0) {
    return reader.fail(kName, reader.given(kName),
                       "it must divide the number of ranks, " + std::to_string(world_size));
  }
  if (size < world_size) zero.group_size = static_cast<int>(size);
  if (size > 1) return;
  reader.note("shared out", "nothing", "computed: --zero-group 1 is plain data parallelism");
  zero = {};
}

void read_zero_of_stage_3(Reader& reader, const Workload& workload, ZeroOptions& zero) {
  const Range<std::int64_t> elements{0, kCountMax};
  const auto persist = std::to_string(kPersistWidths * workload.hidden_width());
  zero.persist = reader.whole("--zero-persist", {persist, "computed: 10 x width"}, elements);
  if (reader.is_given("--zero-prefetch")) {
    zero.prefetch = reader.whole("--zero-prefetch", from_default(""), elements);
  } else {
    reader.note("zero-prefetch", "the next block", "default");
  }
  zero.live_max = reader.whole("--zero-live-max", from_default("1000000000"), elements);
  zero.reuse = reader.whole("--zero-reuse", from_default("0"), elements);
}

void read_zero(Reader& reader, int world_size, const Workload& workload, TrainPlan& plan) {
  auto& zero = plan.zero;
  zero.stage = static_cast<int>(reader.whole("--zero", from_default("0"), {0, kZeroStageMax}));
  for (const char* const name :
       {"--zero-persist", "--zero-prefetch", "--zero-live-max", "--zero-reuse"}) {
    if (zero.stage < 3 && reader.is_given(name))
      reader.fail(name, reader.given(name), "it needs --zero 3");
  }
  if (zero.stage == 3) read_zero_of_stage_3(reader, workload, zero);
  read_zero_group(reader, world_size, zero);
  zero.has_more_passes = plan.accumulation > 1 || plan.logical_shards > world_size;
}

/// Where gradients are not reduced as a whole, or their bits are promised, there is no codec.
void read_reduce(Reader& reader, TrainPlan& plan) {
  auto& reduce = plan.reduce;
  reduce.codec =
      reader.choice("--reduce", "fp32", "fp32, bf16, fp16, int8 or powersgd", codec_from);
  const bool is_power = reduce.codec == Codec::powersgd;
  const bool is_exact = reduce.codec == Codec::fp32;
  if (!is_power && reader.is_given("--reduce-rank"))
    reader.fail("--reduce-rank", reader.given("--reduce-rank"), "it needs --reduce powersgd");
  for (const char* const name : {"--reduce-check-every", "--reduce-check-min"})
    if (is_exact && reader.is_given(name))
      reader.fail(name, reader.given(name), "it needs another --reduce than fp32");
  if (is_exact) return;
  if (plan.zero.stage > 0)
    reader.fail("--reduce", to_string(reduce.codec),
                "it must be fp32 with --zero " + std::to_string(plan.zero.stage) +
                    ", under which no rank has all gradients");
  if (plan.logical_shards > 0)
    reader.fail("--reduce", to_string(reduce.codec),
                "it must be fp32 with --deterministic, whose bits no number of ranks changes");
  if (plan.sync.kind != SyncKind::step)
    reader.fail("--reduce", to_string(reduce.codec),
                "it must be fp32 with another --sync than step, which reduces by itself");
  if (plan.sync.bucket_bytes == 0)
    reader.fail("--bucket-mib", "auto",
                std::string("it measures the exact reduction: with --reduce ") +
                    to_string(reduce.codec) + " it must be a number");
  if (is_power)
    reduce.rank = static_cast<int>(reader.whole(
        "--reduce-rank", from_default(std::to_string(kReduceRankDefault)), {1, kReduceRankMax}));
  reduce.check_every = reader.whole("--reduce-check-every", from_default("100"), {0, kCountMax});
  const double check_min = is_power ? kCheckMinOfPowerSgd : kCheckMinOfRounding;
  reduce.check_min =
      reader.real("--reduce-check-min",
                  {number_text(check_min), std::string("default of ") + to_string(reduce.codec)},
                  {-1, 1}, "it must be a number from -1 to 1");
}

void read_compute(Reader& reader, TrainPlan& plan) {
  const Range<double> share{0, std::nextafter(1.0, 0.0)};
  plan.device = reader.choice("--device", "auto", "auto, cpu or cuda", device_choice_from);
  plan.is_precision_given = reader.is_given("--precision");
  plan.precision = reader.choice("--precision", "fp32", "fp32, bf16 or fp16", precision_from);
  plan.adds_in_order = reader.is_set("--repeatable");
  plan.recompute = reader.is_set("--recompute");
  plan.ema_decay = reader.real("--ema", from_default("0"), share, kShareRule);
}

void read_groups(Reader& reader, TrainPlan& plan) {
  if (!reader.is_given("--group")) return;
  for (const auto& text : reader.names("--group")) {
    auto group = parameter_group_from(text);
    if (group) {
      plan.groups.push_back(std::move(*group));
    } else {
      reader.fail(group.error());
    }
  }
}

void read_schedule(Reader& reader, const RunConfig& config, TrainPlan& plan) {
  constexpr double kInfinity = std::numeric_limits<double>::max();
  Schedule& schedule = plan.schedule;
  schedule.kind =
      reader.choice("--schedule", "cosine", "cosine, linear or constant", schedule_kind_from);
  schedule.lr =
      reader.real("--lr", config.lr, {std::numeric_limits<double>::denorm_min(), kInfinity},
                  "it must be a number greater than 0");
  schedule.min_lr = reader.real(
      "--min-lr", {number_text(schedule.lr / 10), "computed: lr / 10"}, {0, schedule.lr},
      "it must be a number from 0 to the learning rate, " + number_text(schedule.lr));
  read_warmup(reader, plan);
}

void read_optimizer(Reader& reader, TrainPlan& plan) {
  constexpr double kInfinity = std::numeric_limits<double>::max();
  const Range<double> beta_range{0, std::nextafter(1.0, 0.0)};
  const std::string rule = "it must be a number from 0";
  auto& optimizer = plan.rule;
  optimizer.weight_decay = reader.real("--weight-decay", from_default("0.1"), {0, kInfinity}, rule);
  optimizer.beta1 = reader.real("--beta1", from_default("0.9"), beta_range, kShareRule);
  optimizer.beta2 = reader.real("--beta2", from_default("0.95"), beta_range, kShareRule);
  plan.grad_clip = reader.real("--grad-clip", from_default("1"), {0, kInfinity}, rule);
}

/// Which configuration, and what a GPU computes in where no flag says it.
void read_config(Reader& reader, const RunConfig& config, TrainPlan& plan) {
  plan.config = config.row;
  reader.note(config.row.name, config.row.value, config.row.origin);
  plan.gpu_precision = config.gpu_precision;
  plan.gpu_precision_origin = config.gpu_precision_origin;
}

void read_reports(Reader& reader, TrainPlan& plan) {
  const auto out = std::filesystem::path(plan.out);
  plan.tensorboard = reader.folder_or_off("--tensorboard", (out / "tensorboard").string());
  plan.log_dir = reader.folder_or_off("--log-dir", (out / "logs").string());
  if (reader.is_given("--progress-port")) {
    const bool is_off = reader.given("--progress-port") == "off";
    plan.progress_port =
        is_off ? 0
               : static_cast<int>(reader.whole("--progress-port", from_default(""), {0, kPortMax}));
  }
  constexpr double kTflopsMax = 1e6;
  if (!reader.is_given("--peak-tflops")) return;
  plan.peak_tflops = reader.real("--peak-tflops", from_default(""),
                                 {std::numeric_limits<double>::denorm_min(), kTflopsMax},
                                 "it must be a number greater than 0, at most 1000000");
}

void read_run(Reader& reader, TrainPlan& plan) {
  const Range<std::int64_t> from_zero{0, kCountMax};
  plan.seed = static_cast<std::uint64_t>(reader.whole("--seed", from_default("1337"), from_zero));
  plan.save_every = reader.whole("--save-every", from_default("0"), from_zero);
  plan.keep = reader.whole("--keep", from_default("3"), from_zero);
  plan.keep_every = reader.whole("--keep-every", from_default("0"), from_zero);
  plan.resume = reader.is_set("--resume");
  plan.limits = reader.choice("--limit", to_string(Limits{}), kLimitsRule, limits_from);
  plan.log_every = reader.whole("--log-every", from_default("1"), {1, kCountMax});
  plan.log_style = reader.choice("--log-style", "trainer", "trainer or platform", log_style_from);
  read_reports(reader, plan);
  plan.rendezvous_timeout = std::chrono::seconds(reader.whole(
      "--rendezvous-timeout-seconds", from_default("300"), {1, kRendezvousSecondsMax}));
}

}  // namespace

Result<TrainPlan> make_plan(const Flags& flags, int world_size, const Preset& preset,
                            Workload& workload) {
  const auto config = choose_config(preset, flags, world_size);
  if (!config) return config.error();
  Reader reader(flags);
  TrainPlan plan;
  plan.model_name = preset.name;
  reader.note("model", plan.model_name, reader.is_given("--model") ? "flag" : "default");
  read_config(reader, *config, plan);
  if (reader.is_given("--init-from")) plan.init_from = reader.text("--init-from");
  workload.configure(reader);
  plan.data = reader.names("--data");
  read_evaluation(reader, plan);
  plan.data_threads =
      static_cast<int>(reader.whole("--data-threads", config->data_threads, {1, kDataThreadsMax}));
  plan.out = reader.text("--out");
  read_length(reader, preset, plan);
  read_batch(reader, *config, world_size, plan);
  read_schedule(reader, *config, plan);
  read_optimizer(reader, plan);
  read_groups(reader, plan);
  read_compute(reader, plan);
  read_zero(reader, world_size, workload, plan);
  read_determinism(reader, world_size, plan);
  read_sync(reader, world_size, plan);
  read_tuning(reader, plan);
  read_reduce(reader, plan);
  read_run(reader, plan);
  plan.reduce.seed = plan.seed;
  if (reader.error()) return *reader.error();
  plan.settings = reader.take_settings();
  return plan;
}

Result<void> settle_model(TrainPlan& plan, const Workload& workload) {
  for (auto& row : workload.settings()) plan.settings.push_back(std::move(row));
  if (const auto settled = settle_tuning(plan, workload); !settled) return settled.error();
  if (const auto rules = update_rules_of(plan, workload); !rules) return rules.error();
  const auto tensors = workload.tensors();
  const bool has_buffers =
      std::ranges::find(tensors, TensorKind::buffer, &TensorSpec::kind) != tensors.end();
  if (const auto checked = check_sync(plan, workload); !checked) return checked.error();
  if (!has_buffers || plan.logical_shards == 0) return {};
  return Error{.code = Code::invalid,
               .message = "is not possible with " + plan.model_name +
                          ", whose buffers are means over what each rank has seen",
               .subject = "--deterministic"};
}

Result<void> settle_evaluation(TrainPlan& plan, const Workload& workload) {
  const auto row = std::ranges::find(plan.settings, "eval-data", &Setting::name);
  if (!plan.is_eval_chosen) {
    const auto held_out = workload.held_out(plan.data);
    plan.eval_data = held_out.paths;
    if (!held_out.why_not.empty()) row->origin = "default: " + held_out.why_not;
    if (!plan.eval_data.empty()) {
      row->value = plan.eval_data.front();
      for (std::size_t i = 1; i < plan.eval_data.size(); ++i) row->value += " " + plan.eval_data[i];
      row->origin = "default: the val part of --data; --eval-data none leaves it out";
    }
  }
  if (!plan.eval_data.empty()) return {};
  for (const char* const name : {"eval-every", "eval-batches"}) {
    const auto unused = std::ranges::find(plan.settings, name, &Setting::name);
    if (unused->origin == "flag") {
      return Error{.code = Code::invalid,
                   .message = "is \"" + unused->value +
                              "\"; it needs --eval-data, or a val part of --data (`trainer "
                              "prepare --val 1%`)",
                   .subject = std::string("--") + name};
    }
    plan.settings.erase(unused);
  }
  return {};
}

Result<std::vector<UpdateRule>> update_rules_of(const TrainPlan& plan, const Workload& workload) {
  auto groups = workload.groups();
  groups.insert(groups.end(), plan.groups.begin(), plan.groups.end());
  return update_rules(tensors_of(plan, workload), plan.rule, groups);
}

Result<void> settle_device(TrainPlan& plan, const Accelerator& accelerator) {
  plan.gpu = accelerator.gpu();
  if (!plan.gpu) return {};
  if (!plan.is_precision_given) {
    plan.precision = plan.gpu_precision;
    for (auto& row : plan.settings)
      if (row.name == "precision")
        row = {row.name, to_string(plan.precision), plan.gpu_precision_origin};
  }
  if (const auto settled = settle_sync(plan); !settled) return settled.error();
  if (plan.peak_tflops == 0)
    plan.peak_tflops = peak_tflops_of(accelerator.text, plan.precision).value_or(0);
  if (plan.logical_shards == 0) return {};
  return Error{.code = Code::invalid,
               .message =
                   "is not proved on a GPU, whose kernels may add in another order each "
                   "time; --device cpu has the same bits, or the flag must go",
               .subject = "--deterministic"};
}

void settle_log_style(TrainPlan& plan, const ProcessEnv& env) {
  const auto row = std::ranges::find(plan.settings, "log-style", &Setting::name);
  if (!env.is_on_platform || row == plan.settings.end() || row->origin != "default") return;
  plan.log_style = LogStyle::platform;
  *row = {row->name, "platform", "a platform's WORLD_SIZE and RANK, without an operator"};
}

}  // namespace tj::trainer
