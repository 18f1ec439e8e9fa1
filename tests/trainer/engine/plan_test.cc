#include "trainer/train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "contract/names.h"
#include "tests/trainer/engine/gpt2_run.h"
#include "trainer/train/flags.h"

namespace tj::trainer {
namespace {

Flags flags_with(const Flags& more = {}) {
  Flags flags{{"--data", "/text"}, {"--out", "/out"}};
  for (const auto& [name, value] : more) flags[name] = value;
  return flags;
}

std::string error_of(const Flags& more, int world_size = 1) {
  const auto run = gpt2_run(flags_with(more), world_size);
  return run ? "" : describe(run.error());
}

Setting setting_of(const TrainPlan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.settings, name, &Setting::name);
  return found == plan.settings.end() ? Setting{} : *found;
}

TEST(TrainPlan, defaults_come_from_the_preset) {
  const auto run = gpt2_run(flags_with(), 2);
  ASSERT_TRUE(run) << describe(run.error());
  const TrainPlan* const plan = &run->plan;
  EXPECT_EQ(run->workload.config(), gpt2_model(gpt2_presets().front()));
  EXPECT_EQ(plan->schedule.steps, 300);
  EXPECT_EQ(plan->schedule.warmup_steps, 30);
  EXPECT_DOUBLE_EQ(plan->schedule.min_lr, plan->schedule.lr / 10);
  EXPECT_EQ(plan->micro_batch * 2, plan->batch_size);
  EXPECT_EQ(setting_of(*plan, "layers"), (Setting{"layers", "4", "preset gpt2-nano"}));
  EXPECT_EQ(setting_of(*plan, "model").origin, "default");
}

/// Of `trainer train --help`: what stands in parentheses at the end of a flag's lines, where a
/// default stands.
std::string default_in_help(const std::string& flag) {
  const auto entry = gpt2_entry();
  const char* const argv[] = {"train", "--help"};
  const auto parsed = parse_train_flags(2, argv, {&entry, 1}, entry);
  const std::string help = parsed ? parsed->shown.value_or("") : "";
  const auto begin = help.find("  " + flag + " ");
  if (begin == std::string::npos) return "no flag " + flag;
  const std::string entry_text = help.substr(begin, help.find("\n  -", begin) - begin);
  return entry_text.substr(std::min(entry_text.rfind('('), entry_text.size()));
}

TEST(TrainPlan, its_defaults_are_those_of_the_help) {
  const auto run = gpt2_run(flags_with({{"--eval-data", "/text"}, {"--zero", "3"}}), 1);
  ASSERT_TRUE(run) << describe(run.error());
  int compared = 0;
  for (const auto& row : run->plan.settings) {
    const bool is_switch = row.value == "no";
    if (row.origin != "default" || is_switch || row.name == "model") continue;
    EXPECT_THAT(default_in_help("--" + row.name), testing::StartsWith("(" + row.value)) << row.name;
    ++compared;
  }
  EXPECT_GE(compared, 20);
  EXPECT_THAT(default_in_help("--progress-port"),
              testing::StartsWith("(" + std::to_string(names::kProgressPortDefault)));
}

TEST(TrainPlan, a_flag_overrides_and_says_so) {
  const auto run =
      gpt2_run(flags_with({{"--model", "gpt2-small"}, {"--layers", "2"}, {"--lr", "1e-3"}}), 1);
  ASSERT_TRUE(run);
  const TrainPlan* const plan = &run->plan;
  EXPECT_EQ(run->workload.config().layers, 2);
  EXPECT_EQ(run->workload.config().width, 768);
  EXPECT_EQ(plan->schedule.lr, 1e-3);
  EXPECT_EQ(setting_of(*plan, "layers"), (Setting{"layers", "2", "flag"}));
  EXPECT_EQ(setting_of(*plan, "width").origin, "preset gpt2-small");
}

TEST(TrainPlan, every_bad_value_is_named_with_what_is_right) {
  struct Row {
    Flags flags;
    std::string error;
  };
  const Row rows[] = {
      {{{"--steps", "ten"}}, "--steps: is \"ten\"; it must be a whole number from 1"},
      {{{"--steps", "0"}}, "--steps: is \"0\"; it must be a whole number from 1"},
      {{{"--steps", "1.5"}}, "--steps: is \"1.5\"; it must be a whole number from 1"},
      {{{"--steps", "99999999999999999999"}},
       "--steps: is \"99999999999999999999\"; it must be a whole number from 1 to 1000000000000"},
      {{{"--batch-size", "-4"}}, "--batch-size: is \"-4\"; it must be a whole number from 1"},
      {{{"--accumulation", "0"}}, "--accumulation: is \"0\"; it must be a whole number from 1"},
      {{{"--lr", "0"}}, "--lr: is \"0\"; it must be a number greater than 0"},
      {{{"--lr", "nan"}}, "--lr: is \"nan\"; it must be a number greater than 0"},
      {{{"--lr", "inf"}}, "--lr: is \"inf\"; it must be a number greater than 0"},
      {{{"--lr", "0.1"}, {"--min-lr", "0.2"}},
       "--min-lr: is \"0.2\"; it must be a number from 0 to the learning rate, 0.1"},
      {{{"--beta2", "1"}}, "--beta2: is \"1\"; it must be a number from 0 to less than 1"},
      {{{"--heads", "3"}}, "--heads: is \"3\"; it must divide the width, 128"},
      {{{"--heads", "0"}}, "--heads: is \"0\"; it must be a whole number from 1 to 1000000"},
      {{{"--seed", "x"}}, "--seed: is \"x\"; it must be a whole number from 0"},
      {{{"--out", ""}}, "--out: is \"\"; it must name a folder"},
      {{{"--rendezvous-timeout-seconds", "0"}},
       "--rendezvous-timeout-seconds: is \"0\"; it must be a whole number from 1 to 86400"},
      {{{"--schedule", "step"}}, "--schedule: is \"step\"; it must be cosine, linear or constant"},
      {{{"--precision", "fp8"}}, "--precision: is \"fp8\"; it must be fp32, bf16 or fp16"},
      {{{"--gelu", "relu"}}, "--gelu: is \"relu\"; it must be tanh or erf"},
      {{{"--dropout", "1"}}, "--dropout: is \"1\"; it must be a number from 0 to less than 1"},
      {{{"--ema", "-1"}}, "--ema: is \"-1\"; it must be a number from 0 to less than 1"},
      {{{"--group", "wte"}},
       "--group: is \"wte\"; it must be PATTERN:lr=FACTOR,weight-decay=NUMBER, or one of the two"},
      {{{"--logical-shards", "8"}}, "--logical-shards: is \"8\"; it needs --deterministic"},
      {{{"--threads", "0"}}, "--threads: is \"0\"; it must be a whole number from 1 to 1024"},
  };
  for (const auto& row : rows) EXPECT_EQ(error_of(row.flags), row.error);
}

TEST(TrainPlan, a_batch_that_can_not_be_shared_out_is_refused_with_the_numbers) {
  EXPECT_EQ(error_of({{"--batch-size", "10"}, {"--accumulation", "2"}}, 3),
            "--batch-size: is \"10\"; it must be a multiple of ranks x accumulation = 3 x 2 = 6, "
            "such as 6");
  EXPECT_EQ(error_of({{"--batch-size", "1"}}, 2),
            "--batch-size: is \"1\"; it must be a multiple of ranks x accumulation = 2 x 1 = 2, "
            "such as 2");
  EXPECT_EQ(error_of({{"--batch-size", "12"}, {"--accumulation", "2"}}, 3), "");
}

TEST(TrainPlan, deterministic_cuts_the_batch_into_a_power_of_two) {
  const auto logical_shards = [](const char* batch) {
    const auto run =
        gpt2_run(flags_with({{"--deterministic", "true"}, {"--batch-size", batch}}), 1);
    return run ? run->plan.logical_shards : -1;
  };
  EXPECT_EQ(logical_shards("64"), 16);
  EXPECT_EQ(logical_shards("24"), 8);
  EXPECT_EQ(logical_shards("7"), 1);
  const auto run = gpt2_run(flags_with({{"--deterministic", "true"}}), 4);
  ASSERT_TRUE(run);
  const TrainPlan* const plan = &run->plan;
  EXPECT_EQ(plan->threads, 1);
  EXPECT_EQ(setting_of(*plan, "threads"), (Setting{"threads", "1", "--deterministic"}));
  EXPECT_EQ(gpt2_run(flags_with(), 1)->plan.logical_shards, 0);
}

/// As one that was found; nothing of it is called.
Accelerator gpu_named(const std::string& text) {
  static const NcclPlugin plugin{};
  return {.plugin = &plugin, .device = 0, .text = text};
}

TEST(TrainPlan, deterministic_is_refused_on_a_gpu_until_its_bits_are_proved) {
  auto run = gpt2_run(flags_with({{"--deterministic", "true"}}), 1);
  ASSERT_TRUE(run);
  EXPECT_TRUE(settle_device(run->plan, {}));
  const auto settled = settle_device(run->plan, gpu_named("a GPU"));
  ASSERT_FALSE(settled);
  EXPECT_EQ(describe(settled.error()),
            "--deterministic: is not proved on a GPU, whose kernels may add in another order each "
            "time; --device cpu has the same bits, or the flag must go");
}

TEST(TrainPlan, passes_are_bf16_on_a_gpu_unless_a_flag_says_otherwise) {
  struct Row {
    Flags flags;
    Accelerator accelerator;
    Precision precision;
    const char* origin;
    double peak_tflops;
  };
  const auto h100 = gpu_named("NVIDIA H100 80GB HBM3, NCCL 2.28.9");
  const Row rows[] = {
      {{}, {}, Precision::fp32, "default", 0},
      {{}, h100, Precision::bf16, "default on a GPU", 989},
      {{}, gpu_named("NVIDIA H100 PCIe, NCCL 2.28.9"), Precision::bf16, "default on a GPU", 756},
      {{}, gpu_named("a GPU of tomorrow"), Precision::bf16, "default on a GPU", 0},
      {{{"--precision", "fp32"}}, h100, Precision::fp32, "flag", 0},
      {{{"--precision", "fp16"}}, h100, Precision::fp16, "flag", 989},
      {{{"--peak-tflops", "500"}}, h100, Precision::bf16, "default on a GPU", 500},
  };
  for (const auto& row : rows) {
    auto run = gpt2_run(flags_with(row.flags), 1);
    ASSERT_TRUE(run);
    EXPECT_TRUE(settle_device(run->plan, row.accelerator));
    EXPECT_EQ(run->plan.gpu, row.accelerator.gpu());
    EXPECT_EQ(run->plan.precision, row.precision) << row.accelerator.text;
    EXPECT_EQ(setting_of(run->plan, "precision"),
              (Setting{"precision", to_string(row.precision), row.origin}));
    EXPECT_EQ(run->plan.peak_tflops, row.peak_tflops) << row.accelerator.text;
  }
}

TEST(TrainPlan, a_gpu_takes_the_fastest_way_unless_its_bits_are_asked_for) {
  const auto repeats = [](const Flags& flags) {
    return gpt2_run(flags_with(flags), 1)->plan.adds_in_order;
  };
  EXPECT_FALSE(repeats({}));
  EXPECT_TRUE(repeats({{"--repeatable", "true"}}));
  EXPECT_TRUE(repeats({{"--deterministic", "true"}}));
}

TEST(TrainPlan, a_compressed_reduction_is_checked_by_the_bound_of_its_codec) {
  const auto reduce_of = [](const Flags& flags) {
    const auto run = gpt2_run(flags_with(flags), 2);
    EXPECT_TRUE(run) << describe(run.error());
    return run->plan.reduce;
  };
  EXPECT_EQ(reduce_of({}).codec, Codec::fp32);
  EXPECT_EQ(reduce_of({{"--reduce", "int8"}}).check_min, kCheckMinOfRounding);
  EXPECT_EQ(reduce_of({{"--reduce", "int8"}}).check_every, 100);
  const auto power = reduce_of({{"--reduce", "powersgd"}, {"--reduce-rank", "2"}, {"--seed", "7"}});
  EXPECT_EQ(power.check_min, kCheckMinOfPowerSgd);
  EXPECT_EQ(power.rank, 2);
  EXPECT_EQ(power.seed, 7U);
  EXPECT_EQ(error_of({{"--reduce", "int8"}, {"--zero", "1"}}, 2),
            "--reduce: is \"int8\"; it must be fp32 with --zero 1, under which no rank has all "
            "gradients");
  EXPECT_EQ(error_of({{"--reduce-check-min", "0.5"}}, 2),
            "--reduce-check-min: is \"0.5\"; it needs another --reduce than fp32");
}

TEST(TrainPlan, deterministic_refuses_what_its_tree_can_not_hold) {
  const Flags flags{{"--deterministic", "true"}, {"--batch-size", "48"}};
  const auto with = [&](Flags more) {
    more.insert(flags.begin(), flags.end());
    return more;
  };
  EXPECT_EQ(
      error_of(flags, 3),
      "--accumulation: is \"1\"; with --deterministic ranks x accumulation, 3 x 1, must divide "
      "the logical shards, 16");
  EXPECT_EQ(error_of(with({{"--logical-shards", "12"}})),
            "--logical-shards: is \"12\"; it must be a power of two that divides the batch, 48");
  EXPECT_EQ(error_of(with({{"--logical-shards", "32"}})),
            "--logical-shards: is \"32\"; it must be a power of two that divides the batch, 48");
}

TEST(TrainPlan, a_group_is_checked_once_the_model_is_known) {
  const Flags flags = flags_with({{"--group", "transformer.h.9.*:lr=0.1"}});
  EXPECT_TRUE(gpt2_run(flags, 1, /*vocabulary=*/0));
  EXPECT_EQ(error_of(flags),
            "--group: is \"transformer.h.9.*\"; it must match the name of a tensor, such as "
            "transformer.h.0.ln_1.weight, transformer.h.0.ln_1.bias or "
            "transformer.h.0.attn.c_attn.weight");
}

TEST(TrainPlan, what_is_frozen_is_checked_once_the_model_is_known) {
  const Flags flags = flags_with({{"--freeze", "transformer.h.0.*\ntransformer.w?e.weight"}});
  const auto run = gpt2_run(flags, 1);
  ASSERT_TRUE(run) << describe(run.error());
  const auto all = trained_elements(run->workload.tensors());
  const auto left = trained_elements(tensors_of(run->plan, run->workload));
  EXPECT_LT(left, all);
  EXPECT_EQ(setting_of(run->plan, "frozen").value, grouped(all - left));
  EXPECT_EQ(shape_of(run->plan, run->workload).back(),
            (ShapeEntry{"frozen", "--freeze", all - left}));
  EXPECT_EQ(error_of({{"--freeze", "transformer.h.x.*"}}),
            "--freeze: is \"transformer.h.x.*\"; it must match the name of a trained tensor, such "
            "as transformer.h.0.ln_1.weight, transformer.h.0.ln_1.bias or "
            "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(error_of({{"--freeze", "*"}}), "--freeze: leaves nothing to train of 52 tensors");
}

TEST(TrainPlan, groups_of_zero_divide_the_ranks) {
  const auto zero_of = [](const Flags& flags, int ranks) {
    const auto run = gpt2_run(flags_with(flags), ranks);
    EXPECT_TRUE(run) << describe(run.error());
    return run->plan.zero;
  };
  const Flags two{{"--zero", "2"}, {"--zero-group", "2"}};
  EXPECT_EQ(zero_of(two, 4), (ZeroOptions{.stage = 2, .group_size = 2}));
  EXPECT_EQ(zero_of(two, 2), ZeroOptions{.stage = 2}) << "one group of all ranks";
  EXPECT_EQ(zero_of({{"--zero", "2"}}, 4), ZeroOptions{.stage = 2});
  EXPECT_EQ(zero_of({{"--zero", "3"}, {"--zero-group", "1"}}, 4), ZeroOptions{});
  EXPECT_EQ(error_of({{"--zero", "2"}, {"--zero-group", "3"}}, 4),
            "--zero-group: is \"3\"; it must divide the number of ranks, 4");
  EXPECT_EQ(error_of({{"--zero", "1"}, {"--zero-group", "8"}}, 4),
            "--zero-group: is \"8\"; it must divide the number of ranks, 4");
  EXPECT_EQ(error_of({{"--zero-group", "2"}}, 4),
            "--zero-group: is \"2\"; it needs --zero 1, 2 or 3");
}

TEST(TrainPlan, the_vocabulary_is_that_of_the_data_unless_a_flag_says_more) {
  const auto settled = [](const Flags& more, std::int64_t of_data) {
    auto run = gpt2_run(flags_with(more), 1, /*vocabulary=*/0);
    EXPECT_TRUE(run);
    const auto done = run->workload.settle_vocabulary(of_data);
    return done ? std::to_string(run->workload.config().vocabulary) : describe(done.error());
  };
  const Flags padded{{"--vocabulary", "50304"}};
  EXPECT_EQ(settled({}, 256), "256");
  EXPECT_EQ(settled(padded, 50257), "50304");
  EXPECT_EQ(settled(padded, 0), "50304");
  EXPECT_EQ(settled({}, 0),
            "--vocabulary: is missing, and the files of --data don't say it; GPT-2's is 50257");
  EXPECT_EQ(settled({{"--vocabulary", "256"}}, 50257),
            "--vocabulary: is 256; it must be at least that of the data, 50257");
}

// PaLM's formula for GPT-2 124M, as nanoGPT counts it: 6 x 123.65M + 12 x 12 x 768 x 1024.
TEST(TrainPlan, a_token_of_gpt2_costs_0_86_gflop) {
  const auto run = gpt2_run(flags_with({{"--model", "gpt2-small"}}), 1, /*vocabulary=*/50257);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->workload.cost().flops, 855'166'464.0 * 1024);
  EXPECT_EQ(run->workload.cost().bytes, 1025 * 4);
}

TEST(TrainPlan, data_may_be_several_paths) {
  const auto run = gpt2_run({{"--data", "a.tok\nb.tok"}, {"--out", "/out"}}, 1);
  ASSERT_TRUE(run) << describe(run.error());
  const TrainPlan* const plan = &run->plan;
  EXPECT_EQ(plan->data, (std::vector<std::string>{"a.tok", "b.tok"}));
  EXPECT_EQ(setting_of(*plan, "data").value, "a.tok b.tok");
}

Result<ParsedFlags> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "trainer");
  const auto entry = gpt2_entry();
  return parse_train_flags(static_cast<int>(words.size()), words.data(), {&entry, 1}, entry);
}

TEST(Flags, the_model_is_known_before_all_others) {
  const auto model = [](std::vector<const char*> words) {
    return model_flag(static_cast<int>(words.size()), words.data());
  };
  EXPECT_EQ(model({"trainer", "--data", "a", "--model", "gpt2-tiny"}), "gpt2-tiny");
  EXPECT_EQ(model({"trainer", "--model=gpt2-small", "--data", "a"}), "gpt2-small");
  EXPECT_EQ(model({"trainer", "--data", "a"}), std::nullopt);
  EXPECT_EQ(model({"trainer", "--model"}), std::nullopt);
  const auto entry = gpt2_entry();
  EXPECT_EQ(choose_workload({&entry, 1}, "gpt2-small")->preset.name, "gpt2-small");
  EXPECT_EQ(
      describe(choose_workload({&entry, 1}, "gpt3").error()),
      "--model: is \"gpt3\"; it must be one of gpt2-nano, gpt2-tiny, gpt2-tiny-zh, gpt2-small, "
      "gpt2-medium, gpt2-large, gpt2-xl");
}

TEST(Flags, programs_are_told_the_models_that_there_are) {
  const auto given = parsed({"--list-models"});
  ASSERT_TRUE(given) << describe(given.error());
  const auto entry = gpt2_entry();
  EXPECT_EQ(given->shown, models_json({&entry, 1}));
  const std::string first = R"([{"model":"gpt2-nano","workload":"gpt2","steps":)";
  EXPECT_EQ(given->shown->substr(0, first.size()), first);
}

TEST(Flags, data_may_be_given_several_times) {
  const auto given = parsed({"--data", "a", "--data", "b", "--out", "x", "--out", "y"});
  ASSERT_TRUE(given) << describe(given.error());
  EXPECT_EQ(given->flags, (Flags{{"--data", "a\nb"}, {"--out", "y"}}));
}

TEST(Flags, only_given_flags_are_there) {
  const auto given = parsed({"--data", "/text", "--out=/out", "--lr", "-1", "--resume"});
  ASSERT_TRUE(given) << describe(given.error());
  EXPECT_EQ(given->flags,
            (Flags{{"--data", "/text"}, {"--out", "/out"}, {"--lr", "-1"}, {"--resume", "true"}}));
}

TEST(Flags, mistakes_on_the_command_line_are_named) {
  const auto error = [](std::vector<const char*> words) {
    words.insert(words.begin(), {"--data", "/text"});
    const auto given = parsed(std::move(words));
    return given ? std::string() : describe(given.error());
  };
  EXPECT_NE(error({"--out", "/o", "--stepz", "3"}).find("--stepz"), std::string::npos);
  EXPECT_NE(error({}).find("--out is required"), std::string::npos);
  EXPECT_NE(error({"--out", "/o", "--steps"}).find("--steps"), std::string::npos);
}

TEST(Flags, help_lists_every_flag) {
  const auto given = parsed({"--help"});
  ASSERT_TRUE(given);
  ASSERT_TRUE(given->shown);
  for (const char* name :
       {"--model", "--batch-size", "--save-every", "--rendezvous-timeout-seconds", "--seq-len"}) {
    EXPECT_NE(given->shown->find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tj::trainer
