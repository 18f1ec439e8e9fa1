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

TEST(ChosenFlags, rows_of_the_table_name_the_file) {
  std::vector<Setting> rows{{"zero", "3", "flag"}, {"lr", "1", "flag"}};
  name_origin(rows, {{"--zero", "deepspeed"}});
  EXPECT_EQ(rows[0].origin, "deepspeed");
  EXPECT_EQ(rows[1].origin, "flag");
}

}  // namespace
}  // namespace tj::trainer
