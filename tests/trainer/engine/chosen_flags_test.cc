// The command line and the files it names: which value counts, and what the table says of it.
#include "trainer/train/chosen_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
using testing::Contains;

class ChosenFlagsTest : public testing::Test {
 protected:
  std::string path_of(const std::string& name) const { return (folder_.path() / name).string(); }

  Result<ChosenFlags> with_config(const std::string& yaml, Flags more = {}) const {
    folder_.write("c.yaml", yaml);
    more["--config"] = path_of("c.yaml");
    return choose_flags(more, {.world_size = 2, .local_world_size = 2});
  }

  std::string error_of(const std::string& yaml, const Flags& more = {}) const {
    const auto chosen = with_config(yaml, more);
    return chosen ? "" : describe(chosen.error());
  }

  TemporaryFolder folder_;
};

const std::string kYaml =
    "distributed_type: DEEPSPEED\n"
    "deepspeed_config: {zero_stage: 2, gradient_accumulation_steps: 4}\n";

TEST_F(ChosenFlagsTest, a_file_of_accelerate_sets_what_no_flag_says) {
  const auto chosen = with_config(kYaml, {{"--zero", "3"}, {"--lr", "1"}});
  ASSERT_TRUE(chosen) << describe(chosen.error());
  EXPECT_EQ(chosen->flags, (Flags{{"--accumulation", "4"}, {"--lr", "1"}, {"--zero", "3"}}));
  EXPECT_EQ(chosen->origins, (Flags{{"--accumulation", "accelerate"}}));
  EXPECT_THAT(chosen->notes, Contains("accelerate: --zero 2 | not used: --zero 3 is given"));
}

TEST_F(ChosenFlagsTest, a_plain_name_is_left_to_the_plan) {
  const Flags given{{"--config", "taehv-8gpu"}};
  EXPECT_EQ(choose_flags(given, {})->flags, given);
}

TEST_F(ChosenFlagsTest, the_file_within_the_file_is_read_too) {
  folder_.write("d.json", R"({"zero_optimization": {"stage": 1}, "gradient_clipping": 2})");
  const std::string head =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: " +
      path_of("d.json") + "\n";
  const auto chosen = with_config(head);
  ASSERT_TRUE(chosen) << describe(chosen.error());
  EXPECT_EQ(chosen->flags, (Flags{{"--grad-clip", "2"}, {"--zero", "1"}}));
  EXPECT_THAT(chosen->notes, Contains("deepspeed: zero_optimization.stage 1 | --zero 1"));
  const std::string key = "--config: deepspeed_config.deepspeed_config_file: ";
  EXPECT_EQ(error_of(head + "  zero_stage: 3\n"),
            key + path_of("d.json") +
                ": says --zero 1, and the file of --config itself 3; one of the two must go");
  folder_.write("d.json", R"({"gradient_clipping": "much"})");
  EXPECT_EQ(error_of(head),
            key + "gradient_clipping: is \"much\"; it must be a number or \"auto\"");
}

TEST_F(ChosenFlagsTest, what_can_not_be_read_is_named) {
  EXPECT_THAT(error_of("a: [1"), testing::StartsWith("--config " + path_of("c.yaml") + ":1:"));
  EXPECT_THAT(error_of("a: [1"), testing::HasSubstr(": not YAML: "));
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "--config: " + path_of("c.yaml") +
                                               ": holds 2 documents; it must be one, as accelerate "
                                               "writes it");
  const auto missing = choose_flags({{"--config", "missing.yaml"}}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().subject, "--config: missing.yaml");
}

TEST_F(ChosenFlagsTest, a_flag_that_contradicts_a_file_of_deepspeed_is_refused) {
  folder_.write("d.json", R"({"zero_optimization": {"stage": 1}})");
  const auto chosen = choose_flags({{"--deepspeed", path_of("d.json")}, {"--zero", "2"}}, {});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().subject, "--zero");
}

class Variables : public ChosenFlagsTest {
 protected:
  static constexpr EnvironmentFlag kKnown[] = {
      {.variable = "MODEL_PATH", .flag = "--init-from"},
      {.variable = "GRAD_ACCUM_STEPS", .flag = "--accumulation"},
      {.variable = "PER_DEVICE_BATCH", .flag = "--batch-size", .is_of_pass = true}};

  Result<ChosenFlags> chosen(const Flags& given, Flags environment) const {
    const auto lookup = [environment](std::string_view name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional(found->second);
    };
    return choose_flags(given, {.world_size = 16, .local_world_size = 8},
                        {.known = kKnown, .lookup = lookup, .batch_size = 128});
  }
};

TEST_F(Variables, set_what_no_flag_says_and_are_named_as_its_origin) {
  const auto all = chosen(
      {{"--lr", "1"}},
      {{"MODEL_PATH", "/models/qwen"}, {"GRAD_ACCUM_STEPS", "8"}, {"PER_DEVICE_BATCH", "1"}});
  ASSERT_TRUE(all) << describe(all.error());
  EXPECT_EQ(all->flags, (Flags{{"--accumulation", "8"},
                               {"--batch-size", "128"},
                               {"--init-from", "/models/qwen"},
                               {"--lr", "1"}}));
  EXPECT_EQ(all->origins, (Flags{{"--accumulation", "environment GRAD_ACCUM_STEPS"},
                                 {"--batch-size", "environment PER_DEVICE_BATCH"},
                                 {"--init-from", "environment MODEL_PATH"}}));
  EXPECT_THAT(all->notes, Contains("environment: PER_DEVICE_BATCH 1 | --batch-size 128"));
}

TEST_F(Variables, give_way_to_flags_and_empty_ones_say_nothing) {
  const auto all =
      chosen({{"--init-from", "/other"}, {"--batch-size", "32"}},
             {{"MODEL_PATH", "/models/qwen"}, {"GRAD_ACCUM_STEPS", ""}, {"PER_DEVICE_BATCH", "1"}});
  ASSERT_TRUE(all) << describe(all.error());
  EXPECT_EQ(all->flags, (Flags{{"--batch-size", "32"}, {"--init-from", "/other"}}));
  EXPECT_THAT(all->notes,
              Contains("environment: MODEL_PATH /models/qwen | not used: --init-from is /other"));
}

TEST(ChosenFlags, a_flag_that_a_variable_would_have_set_is_missed_with_its_name) {
  constexpr EnvironmentFlag kKnown[] = {{.variable = "DATA_ROOT", .flag = "--data"}};
  const auto missing = missing_flag({{"--lr", "1"}}, "--data", kKnown);
  ASSERT_TRUE(missing);
  EXPECT_EQ(describe(*missing),
            "--data: is missing: give it, or set DATA_ROOT, which says it in start scripts and is "
            "not set here");
  EXPECT_FALSE(missing_flag({{"--data", "a"}}, "--data", kKnown));
  EXPECT_FALSE(missing_flag({}, "--out", kKnown));
}

TEST_F(Variables, a_pass_alone_takes_as_many_passes_as_make_the_batch_of_the_preset) {
  const auto all = chosen({}, {{"PER_DEVICE_BATCH", "2"}});
  ASSERT_TRUE(all) << describe(all.error());
  EXPECT_EQ(all->flags, (Flags{{"--accumulation", "4"}, {"--batch-size", "128"}}));
}

TEST_F(Variables, a_file_of_deepspeed_that_says_otherwise_is_refused_with_their_name) {
  folder_.write("d.json", R"({"gradient_accumulation_steps": 4})");
  const auto both = chosen({{"--deepspeed", path_of("d.json")}}, {{"GRAD_ACCUM_STEPS", "8"}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().subject, "--accumulation (environment GRAD_ACCUM_STEPS)");
  const auto same = chosen({{"--deepspeed", path_of("d.json")}}, {{"GRAD_ACCUM_STEPS", "4"}});
  EXPECT_TRUE(same) << describe(same.error());
}

TEST_F(Variables, what_is_no_number_of_samples_is_refused) {
  const auto wrong = chosen({}, {{"PER_DEVICE_BATCH", "many"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(describe(wrong.error()),
            "PER_DEVICE_BATCH: is \"many\"; it must be a whole number from 1 to 1000000");
}

TEST(ChosenFlags, rows_of_the_table_name_the_file) {
  std::vector<Setting> rows{{"zero", "3", "flag"}, {"lr", "1", "flag"}};
  name_origin(rows, {{"--zero", "deepspeed"}});
  EXPECT_EQ(rows[0].origin, "deepspeed");
  EXPECT_EQ(rows[1].origin, "flag");
}

}  // namespace
}  // namespace tj::trainer
