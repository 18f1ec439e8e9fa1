#include "trainer/train/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "trainer/values/glob.h"

namespace tj::trainer {
namespace {

constexpr Flag kFlags[] = {
    {.name = "--eval-data",
     .help = "what the loss is also taken on, without training on it; as --data, or none (what "
             "`trainer prepare --val` has held out of --data)",
     .is_repeatable = true},
    {.name = "--eval-every",
     .help = "evaluate each N steps and at the end; 0: at the end only (0)"},
    {.name = "--eval-batches",
     .help = "batches of an evaluation, the same ones each time (16, or the whole data once)"},
    {.name = "--data-threads", .help = "threads that read batches ahead (1)"},
    {.name = "--out", .help = "folder for checkpoints and metrics.jsonl", .required = true},
    {.name = "--steps", .help = "optimizer steps in all (preset)"},
    {.name = "--epochs",
     .help = "in place of --steps: so many passes over the data, such as 5 or 0.5 (none)"},
    {.name = "--batch-size", .help = "samples in one optimizer step, over all ranks (preset)"},
    {.name = "--accumulation", .help = "passes that make one optimizer step (1)"},
    {.name = "--lr", .help = "highest learning rate (preset)"},
    {.name = "--schedule", .help = "after the warm-up: cosine, linear or constant (cosine)"},
    {.name = "--min-lr", .help = "learning rate of the last step (a tenth of --lr)"},
    {.name = "--warmup-steps",
     .help = "steps of linear warm-up (a tenth of --steps, at most 2000)"},
    {.name = "--weight-decay", .help = "decoupled, on matrices and embeddings only (0.1)"},
    {.name = "--beta1", .help = "AdamW (0.9)"},
    {.name = "--beta2", .help = "AdamW (0.95)"},
    {.name = "--group",
     .help =
         "PATTERN:lr=FACTOR,weight-decay=NUMBER for the tensors whose names match; may be given "
         "several times",
     .is_repeatable = true},
    {.name = "--freeze",
     .help = "PATTERN of names of tensors that stay as they are; may be given several times",
     .is_repeatable = true},
    {.name = "--lora",
     .help = "rank of low-rank adapters, which are trained in place of the weights (none)"},
    {.name = "--lora-alpha", .help = "over the rank: by what adapters are multiplied (the rank)"},
    {.name = "--lora-targets",
     .help = "PATTERN,... of names of matrices that get adapters; needed with --lora"},
    {.name = "--lora-also",
     .help = "PATTERN,... of names of tensors that are trained as a whole beside them (none)"},
    {.name = "--grad-clip", .help = "largest global norm of the gradient; 0: none (1)"},
    {.name = "--ema", .help = "decay of an average of the weights, saved beside them; 0: none (0)"},
    {.name = "--device",
     .help = "cpu; cuda: a GPU for each process, or no run; auto: where one can be used (auto)"},
    {.name = "--precision", .help = "of matrix products: fp32, bf16 or fp16 (fp32; bf16 on a GPU)"},
    {.name = "--repeatable",
     .help = "on a GPU: the same bits each time, by attention and convolutions that add in one "
             "order, not by the fastest",
     .is_switch = true},
    {.name = "--recompute",
     .help = "keep each layer's input only and run it again in backward: less memory, more time",
     .is_switch = true},
    {.name = "--config",
     .help = "batch, passes, learning rate and threads by the number of GPUs: auto, none, the name "
             "of one, or a configuration file of accelerate, FILE.yaml, of which it is said what "
             "becomes of each key; auto where the model has some (none)"},
    {.name = "--deepspeed",
     .help = "a DeepSpeed configuration file (JSON); it is said what becomes of each key"},
    {.name = "--zero",
     .help = "what ranks share out instead of each having it: 1: moments, 2: and gradients, 3: and "
             "weights; 0: nothing (0)"},
    {.name = "--zero-group",
     .help = "so many ranks in a row share out among themselves, and the groups have the same: "
             "must divide the number of ranks; 1: nothing is shared out (all ranks)"},
    {.name = "--zero-persist",
     .help = "at stage 3: tensors of up to so many elements stay whole (10 x the width)"},
    {.name = "--zero-prefetch",
     .help = "at stage 3: elements gathered ahead of the block that computes (the next block)"},
    {.name = "--zero-live-max",
     .help = "at stage 3: nothing is gathered ahead beyond so many elements (1000000000)"},
    {.name = "--zero-reuse",
     .help = "at stage 3: weights stay that are needed again within so many elements, also in the "
             "next pass of a step (0)"},
    {.name = "--sync",
     .help =
         "when ranks become the same: step: in each step; late: gradients are applied one step "
         "late; local: weights are averaged each few steps; diloco: moved by an outer optimizer "
         "each few steps (step)"},
    {.name = "--sync-every", .help = "steps between two of them (local: 50, diloco: 100)"},
    {.name = "--outer-lr", .help = "of diloco's outer optimizer (0.7)"},
    {.name = "--outer-momentum", .help = "Nesterov's, of diloco's outer optimizer (0.9)"},
    {.name = "--bucket-mib",
     .help = "size in which gradients are reduced while backward runs; auto: by what the first "
             "steps show of wire and backward (25)"},
    {.name = "--reduce",
     .help = "what gradients are on the wire: fp32, bf16, fp16, int8 or powersgd (fp32)"},
    {.name = "--reduce-rank", .help = "of powersgd: rank of its matrices, 1 to 64 (16)"},
    {.name = "--reduce-check-every",
     .help = "compare with the exact gradient each N steps; 0: never (100)"},
    {.name = "--reduce-check-min",
     .help = "below this cosine to it gradients are reduced exactly from then on (0.9; 0.05 of "
             "powersgd)"},
    {.name = "--deterministic",
     .help = "the same bits on 1, 2, 4... ranks and with any accumulation",
     .is_switch = true},
    {.name = "--logical-shards",
     .help = "parts of a batch under --deterministic (the largest power of two up to 16)"},
    {.name = "--threads", .help = "of each rank; 1 under --deterministic (its share of the cores)"},
    {.name = "--seed", .help = "of the initial weights and of the order of the data (1337)"},
    {.name = "--save-every",
     .help = "checkpoint each N steps and at the end; 0: at the end only (0)"},
    {.name = "--keep", .help = "newest checkpoints to keep; 0: all (3)"},
    {.name = "--keep-every",
     .help = "checkpoints of steps that are multiples of it stay for ever; 0: none (0)"},
    {.name = "--resume",
     .help = "go on from the newest usable checkpoint in --out",
     .is_switch = true},
    {.name = "--init-from",
     .help = "begin with these weights: a folder as transformers saves it, or a .safetensors file"},
    {.name = "--log-every", .help = "print each N-th step (1)"},
    {.name = "--log-style",
     .help = "trainer; platform: lines that begin \"Step 1/100 | Loss: 0.15\" (trainer)"},
    {.name = "--limit",
     .help =
         "PHASE=SECONDS,... that a rank may stand still before all end: start, step, eval or save; "
         "silence: that its whole process may; 0: for ever "
         "(start=600,step=300,eval=300,save=600,silence=8)"},
    {.name = "--tensorboard",
     .help = "folder for TensorBoard's event files, or off (tensorboard in --out)"},
    {.name = "--log-dir", .help = "folder for a log of each rank, or off (logs in --out)"},
    {.name = "--progress-port",
     .help = "where rank 0 serves /progress and /metrics; off: nowhere (29600 in a job, else off)"},
    {.name = "--peak-tflops",
     .help = "what each rank's device can do at most, for the mfu (by the GPU's name)"},
    {.name = "--rendezvous-timeout-seconds", .help = "how long ranks wait for each other (300)"},
};

/// Those above that change what a step costs. One that is not there is none.
constexpr std::string_view kPlanned[] = {
    "--steps",        "--epochs",        "--batch-size",    "--accumulation", "--ema",
    "--device",       "--precision",     "--recompute",     "--config",       "--deepspeed",
    "--zero",         "--zero-group",    "--threads",       "--init-from",    "--reduce",
    "--zero-persist", "--zero-prefetch", "--zero-live-max", "--zero-reuse",   "--reduce-rank",
    "--data-threads", "--freeze",        "--lora",          "--lora-targets", "--lora-alpha",
    "--lora-also",
};

/// Of all commands of workloads.
constexpr Flag kCommandFlags[] = {
    {.name = "--device",
     .help = "cpu; cuda: a GPU, or nothing; auto: where one can be used (auto)"},
    {.name = "--precision", .help = "of matrix products: fp32, bf16 or fp16 (fp32; fp16 on a GPU)"},
    {.name = "--threads", .help = "of the CPU (the cores that may be used)"},
};

std::vector<std::string> model_names(std::span<const WorkloadEntry* const> entries) {
  std::vector<std::string> names;
  for (const auto* const entry : entries)
    for (const auto& preset : entry->presets) names.emplace_back(preset.name);
  return names;
}

/// "gpt2-nano, gpt2-tiny or gpt2-small (default gpt2-nano)"
std::string model_help(Registry registry) {
  std::vector<const WorkloadEntry*> all;
  for (const auto& entry : registry) all.push_back(&entry);
  const auto names = model_names(all);
  return one_of_text(names) + " (default " + names.front() + ")";
}

/// Makes options of flags, and takes from them what was given.
class Options {
 public:
  Options(CLI::App& app, Flags& values) : app_(app), values_(values) {}

  void add(const Flag& flag, const std::string& help, const std::string& group) {
    std::string& value = values_[flag.name];
    auto* const option = flag.is_switch ? app_.add_flag_callback(
                                              flag.name, [&value] { value = "true"; }, help)
                                        : app_.add_option(flag.name, value, help);
    option->group(group);
    names_.emplace_back(flag.name);
    if (flag.is_switch) return;
    option->type_name("VALUE")
        ->multi_option_policy(flag.is_repeatable ? CLI::MultiOptionPolicy::Join
                                                 : CLI::MultiOptionPolicy::TakeLast)
        ->required(flag.required);
  }

  Flags given() const {
    Flags flags;
    for (const auto& name : names_)
      if (app_.get_option(name)->count() > 0) flags[name] = values_.find(name)->second;
    return flags;
  }

 private:
  CLI::App& app_;
  Flags& values_;
  std::vector<std::string> names_;
};

Result<ParsedFlags> parse(CLI::App& app, const Options& options, int argc,
                          const char* const* argv) {
  ParsedFlags parsed;
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    parsed.shown = app.help();
    return parsed;
  } catch (const CLI::CallForVersion& models) {
    parsed.shown = models.what();
    return parsed;
  } catch (const CLI::ParseError& failure) {
    return Error{.code = Code::invalid,
                 .message = std::string(failure.what()) + "; `" + app.get_name() +
                            " --help` lists the flags",
                 .subject = "command line"};
  }
  parsed.flags = options.given();
  return parsed;
}

bool has_variable(const WorkloadEntry& workload, std::string_view flag) {
  return std::ranges::any_of(workload.environment,
                             [&](const auto& known) { return known.flag == flag; });
}

}  // namespace

std::string models_json(Registry registry) {
  auto models = nlohmann::ordered_json::array();
  for (const auto& entry : registry) {
    for (const auto& preset : entry.presets) {
      models.push_back({{"model", preset.name},
                        {"workload", entry.name},
                        {"steps", preset.steps},
                        {"batch_size", preset.batch_size},
                        {"lr", preset.lr}});
    }
  }
  return models.dump();
}

std::optional<std::string> model_flag(int argc, const char* const* argv) {
  constexpr std::string_view kModel = "--model";
  std::optional<std::string> model;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == kModel && i + 1 < argc) model = argv[i + 1];
    if (word.starts_with("--model=")) model = word.substr(kModel.size() + 1);
  }
  return model;
}

Result<ParsedFlags> parse_train_flags(int argc, const char* const* argv, Registry registry,
                                      const WorkloadEntry& workload) {
  CLI::App app("Trains " + std::string(workload.title) + ", alone or as one of several ranks.",
               "trainer train");
  Flags values;
  Options options(app, values);
  const std::string common = "Options";
  options.add({.name = "--model", .help = ""}, model_help(registry), common);
  // What CLI11 calls a version is any text that is shown instead of all else.
  app.set_version_flag("--list-models", models_json(registry),
                       "print the names for --model, in JSON, and nothing else")
      ->group(common);
  // Where variables may say it, who reads it says that it is missing.
  options.add({.name = "--data",
               .help = "",
               .is_repeatable = true,
               .required = !has_variable(workload, "--data")},
              workload.data_help, common);
  for (const auto& flag : kFlags) options.add(flag, flag.help, common);
  const std::string own = "Options of " + std::string(workload.name);
  for (const auto& flag : workload.flags) options.add(flag, flag.help, own);
  return parse(app, options, argc, argv);
}

Result<Choice> choose_command(Registry registry, std::string_view name,
                              const std::optional<std::string>& model) {
  std::vector<const WorkloadEntry*> able;
  for (const auto& entry : registry)
    if (find_command(entry, name) != nullptr) able.push_back(&entry);
  TJ_CHECK(!able.empty(), "a command that a workload has");
  if (!model && able.size() == 1) return Choice{able.front(), able.front()->presets.front()};
  const auto wrong = [&](const std::string& is) {
    return Error{.code = Code::invalid,
                 .message = is + "; it must be one of " + one_of_text(model_names(able)),
                 .subject = "--model"};
  };
  if (!model) return wrong("is not given");
  const auto choice = choose_workload(registry, model);
  if (!choice || find_command(*choice->entry, name) == nullptr)
    return wrong("is \"" + *model + "\", of which `trainer " + std::string(name) +
                 "` knows nothing");
  return choice;
}

const WorkloadCommand* find_command(const WorkloadEntry& entry, std::string_view name) {
  const auto found = std::ranges::find(entry.commands, name, &WorkloadCommand::name);
  return found == entry.commands.end() ? nullptr : &*found;
}

Result<ParsedFlags> parse_command_flags(int argc, const char* const* argv,
                                        const WorkloadEntry& workload,
                                        const WorkloadCommand& command) {
  const std::string name = "trainer " + std::string(command.name);
  CLI::App app(std::string(command.title) + ".", name);
  Flags values;
  Options options(app, values);
  for (const auto& flag : command.flags) options.add(flag, flag.help, "Options");
  const auto* const only = &workload;
  options.add({.name = "--model", .help = ""},
              one_of_text(model_names({&only, 1})) + " (what stands beside the weights says)",
              "Options");
  for (const auto& flag : kCommandFlags) options.add(flag, flag.help, "Options");
  return parse(app, options, argc, argv);
}

Result<ParsedFlags> parse_plan_flags(int argc, const char* const* argv,
                                     const WorkloadEntry& workload, std::span<const Flag> own) {
  CLI::App app("Says what training " + std::string(workload.title) +
                   " will cost: traffic, time and memory, and which settings fit a slow link.",
               "trainer plan");
  Flags values;
  Options options(app, values);
  for (const auto& flag : own) options.add(flag, flag.help, "Options");
  const std::string common = "As of trainer train";
  const auto* const only = &workload;
  options.add({.name = "--model", .help = ""}, one_of_text(model_names({&only, 1})), common);
  options.add({.name = "--data", .help = "", .is_repeatable = true},
              std::string(workload.data_help) + " (samples are made up)", common);
  for (const auto& flag : kFlags)
    if (std::ranges::find(kPlanned, std::string_view(flag.name)) != std::end(kPlanned))
      options.add(flag, flag.help, common);
  for (const auto& flag : workload.flags)
    options.add(flag, flag.help, "Options of " + std::string(workload.name));
  return parse(app, options, argc, argv);
}

}  // namespace tj::trainer
