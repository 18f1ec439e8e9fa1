#include "trainer/train/plan.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "contract/utf8.h"
#include "trainer/data/batch_reader.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kCountMax = 1'000'000'000'000;
constexpr std::int64_t kModelExtentMax = 1'000'000;
constexpr std::int64_t kWarmupStepsMax = 2000;  // nanoGPT: train.py
constexpr std::int64_t kRendezvousSecondsMax = 86'400;
constexpr std::int64_t kLogicalShardsMax = 16;  // unless a flag says more
constexpr std::int64_t kThreadsMax = 1024;
constexpr std::int64_t kPortMax = 65'535;
constexpr std::int64_t kZeroStageMax = 3;
constexpr std::int64_t kPersistWidths = 10;  // transformers: integrations/deepspeed.py

template <typename T>
struct Range {
  T min;
  T max;
};

/// Takes flags one by one, writes the table as it goes, and keeps the first error.
class Reader {
 public:
  explicit Reader(const Flags& flags) : flags_(flags) {}

  std::string text(const std::string& name) {
    const auto found = flags_.find(name);
    std::string value = found == flags_.end() ? "" : found->second;
    if (value.empty()) fail(name, value, "it must name a folder");
    std::string shown = value;
    std::ranges::replace(shown, '\n', ' ');
    note(name, shown, "flag");
    return value;
  }

  /// "off" is empty. Not in the table: who opens the folder says what became of it.
  std::string folder_or_off(const std::string& name, const std::string& otherwise) {
    const auto found = flags_.find(name);
    if (found == flags_.end()) return otherwise;
    if (found->second.empty()) fail(name, "", "it must name a folder, or be off");
    return found->second == "off" ? "" : found->second;
  }

  std::int64_t whole(const std::string& name, Setting otherwise, Range<std::int64_t> range) {
    const std::string rule = range.max >= kCountMax
                                 ? "it must be a whole number from " + std::to_string(range.min)
                                 : "it must be a whole number from " + std::to_string(range.min) +
                                       " to " + std::to_string(range.max);
    return number<std::int64_t>(name, std::move(otherwise), range, rule);
  }

  double real(const std::string& name, Setting otherwise, Range<double> range,
              const std::string& rule) {
    return number<double>(name, std::move(otherwise), range, rule);
  }

  bool is_given(const std::string& name) const { return flags_.contains(name); }
  const std::string& given(const std::string& name) const { return flags_.find(name)->second; }

  /// One of the names that `parse` knows; `rule` lists them.
  template <typename Parse>
  auto choice(const std::string& name, const std::string& otherwise, const std::string& rule,
              Parse parse) {
    const auto found = flags_.find(name);
    const std::string value = found == flags_.end() ? otherwise : found->second;
    const auto parsed = parse(value);
    if (!parsed) fail(name, value, "it must be " + rule);
    note(name, value, found == flags_.end() ? "default" : "flag");
    return parsed.value_or(*parse(otherwise));
  }

  std::vector<std::string> names(const std::string& name) {
    std::vector<std::string> result;
    std::istringstream lines(text(name));
    for (std::string line; std::getline(lines, line);) result.push_back(line);
    return result;
  }

  bool is_set(const std::string& name) {
    const bool given = flags_.contains(name);
    note(name, given ? "yes" : "no", given ? "flag" : "default");
    return given;
  }

  void note(const std::string& name, const std::string& value, std::string origin) {
    const std::string shown = name.starts_with("--") ? name.substr(2) : name;
    settings.push_back(
        {.name = shown, .value = with_invalid_utf8_replaced(value), .origin = std::move(origin)});
  }

  void fail(const std::string& name, const std::string& value, const std::string& rule) {
    fail({.code = Code::invalid, .message = "is \"" + value + "\"; " + rule, .subject = name});
  }

  void fail(Error first) {
    if (!error) error = std::move(first);
  }

  std::vector<Setting> settings;
  std::optional<Error> error;

 private:
  template <typename T>
  T number(const std::string& name, Setting otherwise, Range<T> range, const std::string& rule) {
    const auto found = flags_.find(name);
    const bool given = found != flags_.end();
    const std::string& text = given ? found->second : otherwise.value;
    T value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool parsed = failure == std::errc{} && end == text.data() + text.size();
    if (!parsed || !(value >= range.min && value <= range.max)) {
      fail(name, text, rule);
      value = range.min > T{} ? range.min
                              : T{1};  // what follows from it is not used, but must not trap
    }
    note(name, text, given ? "flag" : otherwise.origin);
    return value;
  }

  const Flags& flags_;
};

Setting from_default(std::string value) {
  return {.name = "", .value = std::move(value), .origin = "default"};
}

using Init = std::optional<InitialModel>;

/// The flags that only repeat what the weights of --init-from are.
void check_against_init(Reader& reader, const InitialModel& init, const Gpt2Config& asked) {
  const std::tuple<const char*, std::int64_t, std::int64_t> values[] = {
      {"--layers", asked.layers, init.model.layers},
      {"--width", asked.width, init.model.width},
      {"--seq-len", asked.context, init.model.context},
      {"--heads", asked.heads, init.model.heads > 0 ? init.model.heads : asked.heads},
      {"--vocabulary", asked.vocabulary, init.model.vocabulary}};
  for (const auto& [name, value, of_init] : values) {
    if (value != of_init)
      reader.fail(name, std::to_string(value),
                  init.path.string() + " has " + std::to_string(of_init));
  }
}

void read_model(Reader& reader, const Gpt2Preset& preset, const Init& init, TrainPlan& plan) {
  const Gpt2Config& base = init ? init->model : preset.model;
  const std::string origin = init ? "init-from" : "preset " + std::string(preset.name);
  const auto otherwise = [&](std::int64_t value) {
    return Setting{.name = "", .value = std::to_string(value), .origin = origin};
  };
  const Range<std::int64_t> extent{1, kModelExtentMax};
  if (init) plan.init_from = reader.text("--init-from");
  plan.model.layers = reader.whole("--layers", otherwise(base.layers), extent);
  if (base.heads == 0 && !reader.is_given("--heads"))
    reader.fail("--heads", "", "no config.json beside " + init->path.string() + " says it");
  plan.model.heads = reader.whole("--heads", otherwise(base.heads), extent);
  plan.model.width = reader.whole("--width", otherwise(base.width), extent);
  plan.model.context = reader.whole("--seq-len", otherwise(base.context), extent);
  if (plan.model.width % plan.model.heads != 0) {
    reader.fail("--heads", std::to_string(plan.model.heads),
                "it must divide the width, " + std::to_string(plan.model.width));
  }
  const bool knows_vocabulary = init || reader.is_given("--vocabulary");
  plan.model.vocabulary =
      knows_vocabulary ? reader.whole("--vocabulary", otherwise(base.vocabulary), extent) : 0;
  if (init) check_against_init(reader, *init, plan.model);
}

void read_evaluation(Reader& reader, TrainPlan& plan) {
  if (!reader.is_given("--eval-data")) {
    for (const char* const name : {"--eval-every", "--eval-batches"}) {
      if (reader.is_given(name)) reader.fail(name, reader.given(name), "it needs --eval-data");
    }
    return;
  }
  plan.eval_data = reader.names("--eval-data");
  plan.eval_every = reader.whole("--eval-every", from_default("0"), {0, kCountMax});
  plan.eval_batches = reader.whole("--eval-batches", from_default("16"), {1, kCountMax});
}

void read_batch(Reader& reader, const Gpt2Preset& preset, int world_size, TrainPlan& plan) {
  const std::string origin = "preset " + std::string(preset.name);
  const Range<std::int64_t> count{1, kCountMax};
  plan.schedule.steps = reader.whole("--steps", {"", std::to_string(preset.steps), origin}, count);
  plan.batch_size =
      reader.whole("--batch-size", {"", std::to_string(preset.batch_size), origin}, count);
  plan.accumulation = reader.whole("--accumulation", from_default("1"), count);
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

std::string shards_rule(std::int64_t batch_size) {
  return "it must be a power of two that divides the batch, " + std::to_string(batch_size);
}

/// The same bits on any number of ranks need the same shards, and the same number of threads.
void read_determinism(Reader& reader, int world_size, TrainPlan& plan) {
  const bool is_deterministic = reader.is_set("--deterministic");
  if (is_deterministic) {
    const auto largest = std::min(kLogicalShardsMax, plan.batch_size & -plan.batch_size);
    plan.logical_shards = reader.whole(
        "--logical-shards",
        {"", std::to_string(largest), "computed: largest power of two up to 16"}, {1, kCountMax});
    const auto shards = static_cast<std::uint64_t>(plan.logical_shards);
    if (!std::has_single_bit(shards) || plan.batch_size % plan.logical_shards != 0) {
      reader.fail("--logical-shards", std::to_string(plan.logical_shards),
                  shards_rule(plan.batch_size));
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
      static_cast<int>(reader.whole("--threads", {"", "1", "--deterministic"}, {1, kThreadsMax}));
}

void read_zero(Reader& reader, TrainPlan& plan) {
  const Range<std::int64_t> elements{0, kCountMax};
  auto& zero = plan.zero;
  zero.stage = static_cast<int>(reader.whole("--zero", from_default("0"), {0, kZeroStageMax}));
  for (const char* const name :
       {"--zero-persist", "--zero-prefetch", "--zero-live-max", "--zero-reuse"}) {
    if (zero.stage < 3 && reader.is_given(name))
      reader.fail(name, reader.given(name), "it needs --zero 3");
  }
  if (zero.stage < 3) return;
  const auto persist = std::to_string(kPersistWidths * plan.model.width);
  zero.persist = reader.whole("--zero-persist", {"", persist, "computed: 10 x width"}, elements);
  if (reader.is_given("--zero-prefetch")) {
    zero.prefetch = reader.whole("--zero-prefetch", from_default(""), elements);
  } else {
    reader.note("zero-prefetch", "the next block", "default");
  }
  zero.live_max = reader.whole("--zero-live-max", from_default("1000000000"), elements);
  zero.reuse = reader.whole("--zero-reuse", from_default("0"), elements);
}

void read_compute(Reader& reader, TrainPlan& plan) {
  const Range<double> share{0, std::nextafter(1.0, 0.0)};
  const std::string share_rule = "it must be a number from 0 to less than 1";
  plan.device = reader.choice("--device", "auto", "auto, cpu or cuda", device_choice_from);
  plan.precision = reader.choice("--precision", "fp32", "fp32, bf16 or fp16", precision_from);
  plan.dropout = reader.real("--dropout", from_default("0"), share, share_rule);
  plan.recompute = reader.is_set("--recompute");
  plan.ema_decay = reader.real("--ema", from_default("0"), share, share_rule);
  if (reader.is_given("--ignore-token"))
    plan.ignored_token = reader.whole("--ignore-token", from_default(""), {0, kModelExtentMax});
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

void read_schedule(Reader& reader, const Gpt2Preset& preset, TrainPlan& plan) {
  constexpr double kInfinity = std::numeric_limits<double>::max();
  Schedule& schedule = plan.schedule;
  schedule.kind =
      reader.choice("--schedule", "cosine", "cosine, linear or constant", schedule_kind_from);
  schedule.lr = reader.real(
      "--lr", {"", number_text(preset.lr), "preset " + std::string(preset.name)},
      {std::numeric_limits<double>::denorm_min(), kInfinity}, "it must be a number greater than 0");
  schedule.min_lr = reader.real(
      "--min-lr", {"", number_text(schedule.lr / 10), "computed: lr / 10"}, {0, schedule.lr},
      "it must be a number from 0 to the learning rate, " + number_text(schedule.lr));
  const std::int64_t warmup = std::min(kWarmupStepsMax, schedule.steps / 10);
  schedule.warmup_steps = reader.whole(
      "--warmup-steps", {"", std::to_string(warmup), "computed: steps / 10, at most 2000"},
      {0, kCountMax});
}

void read_optimizer(Reader& reader, TrainPlan& plan) {
  constexpr double kInfinity = std::numeric_limits<double>::max();
  const std::string beta_rule = "it must be a number from 0 to less than 1";
  const Range<double> beta_range{0, std::nextafter(1.0, 0.0)};
  const std::string rule = "it must be a number from 0";
  auto& optimizer = plan.optimizer;
  optimizer.weight_decay = reader.real("--weight-decay", from_default("0.1"), {0, kInfinity}, rule);
  optimizer.beta1 = reader.real("--beta1", from_default("0.9"), beta_range, beta_rule);
  optimizer.beta2 = reader.real("--beta2", from_default("0.95"), beta_range, beta_rule);
  plan.grad_clip = reader.real("--grad-clip", from_default("1"), {0, kInfinity}, rule);
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
  read_reports(reader, plan);
  plan.rendezvous_timeout = std::chrono::seconds(reader.whole(
      "--rendezvous-timeout-seconds", from_default("300"), {1, kRendezvousSecondsMax}));
}

}  // namespace

Result<TrainPlan> make_plan(const Flags& flags, int world_size, const Init& init) {
  Reader reader(flags);
  const auto model = flags.find("--model");
  const std::string name =
      model == flags.end() ? std::string(gpt2_presets().front().name) : model->second;
  const auto preset = find_gpt2_preset(name);
  if (!preset) {
    std::string names;
    for (const auto& known : gpt2_presets())
      names += (names.empty() ? "" : ", ") + std::string(known.name);
    return Error{.code = Code::invalid,
                 .message = "is \"" + name + "\"; it must be one of " + names,
                 .subject = "--model"};
  }
  TrainPlan plan;
  plan.model_name = name;
  reader.note("model", name, model == flags.end() ? "default" : "flag");
  read_model(reader, *preset, init, plan);
  plan.data = reader.names("--data");
  read_evaluation(reader, plan);
  plan.data_threads =
      static_cast<int>(reader.whole("--data-threads", from_default("1"), {1, kDataThreadsMax}));
  plan.out = reader.text("--out");
  read_batch(reader, *preset, world_size, plan);
  read_schedule(reader, *preset, plan);
  read_optimizer(reader, plan);
  read_groups(reader, plan);
  read_compute(reader, plan);
  read_zero(reader, plan);
  read_determinism(reader, world_size, plan);
  read_run(reader, plan);
  if (reader.error) return *reader.error;
  plan.settings = std::move(reader.settings);
  return plan;
}

Result<void> settle_vocabulary(TrainPlan& plan, std::int64_t data_vocabulary) {
  const auto wrong = [](std::string message) {
    return Error{.code = Code::invalid, .message = std::move(message), .subject = "--vocabulary"};
  };
  auto& vocabulary = plan.model.vocabulary;
  if (vocabulary == 0 && data_vocabulary == 0) {
    return wrong("is missing, and the files of --data don't say it; GPT-2's is 50257");
  }
  if (vocabulary == 0) {
    vocabulary = data_vocabulary;
    plan.settings.push_back({"vocabulary", std::to_string(vocabulary), "computed from the data"});
  }
  if (vocabulary < data_vocabulary) {
    return wrong("is " + std::to_string(vocabulary) + "; it must be at least that of the data, " +
                 std::to_string(data_vocabulary));
  }
  if (const auto rules =
          update_rules(gpt2_tensors(plan.model), plan.optimizer.weight_decay, plan.groups);
      !rules)
    return rules.error();
  plan.settings.push_back(
      {"parameters", grouped(parameter_count(plan.model)), "computed from the model"});
  return {};
}

Result<void> settle_device(TrainPlan& plan, std::optional<int> gpu) {
  plan.gpu = gpu;
  if (!gpu || plan.logical_shards == 0) return {};
  return Error{.code = Code::invalid,
               .message =
                   "is not proved on a GPU, whose kernels may add in another order each "
                   "time; --device cpu has the same bits, or the flag must go",
               .subject = "--deterministic"};
}

}  // namespace tj::trainer
