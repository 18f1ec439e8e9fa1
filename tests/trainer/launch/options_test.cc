#include "trainer/launch/options.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

using Words = std::vector<std::string>;

Result<CommandLine> parse(const Words& words) { return parse_command_line(words, "9.9"); }

LaunchOptions launch_of(const Words& words) {
  const auto line = parse(words);
  EXPECT_TRUE(line.ok()) << describe(line.error());
  return std::get<LaunchOptions>(*line);
}

std::string error_of(const Words& words) {
  const auto line = parse(words);
  return line ? "accepted" : describe(line.error());
}

TEST(Options, launch_has_defaults) {
  EXPECT_EQ(launch_of({"launch", "--", "python3", "train.py"}),
            (LaunchOptions{.grace = std::chrono::seconds(30), .command = {"python3", "train.py"}}));
}

TEST(Options, launch_takes_values_with_and_without_equals) {
  const LaunchOptions expected{.identity = {.nproc = {NprocChoice::Source::fixed, 2}},
                               .grace = std::chrono::seconds(5),
                               .max_restarts = 3,
                               .command = {"a"}};
  EXPECT_EQ(launch_of({"launch", "--nproc", "2", "--grace-seconds", "5", "--max-restarts", "3",
                       "--", "a"}),
            expected);
  EXPECT_EQ(launch_of({"launch", "--nproc=2", "--grace-seconds=5", "--max-restarts=3", "a"}),
            expected);
}

TEST(Options, nproc_auto_counts_devices) {
  EXPECT_EQ(launch_of({"launch", "--nproc", "auto", "--", "a"}).identity.nproc.source,
            NprocChoice::Source::count_devices);
}

TEST(Options, the_commands_own_options_are_left_alone) {
  EXPECT_EQ(launch_of({"launch", "--", "a", "--nproc", "7", "--", "--help", ""}).command,
            (Words{"a", "--nproc", "7", "--", "--help", ""}));
  EXPECT_EQ(launch_of({"launch", "--", "--", "-x"}).command, (Words{"--", "-x"}));
  EXPECT_EQ(launch_of({"launch", "a", "--betas", "[0.9,0.95]", "--x=", "{}"}).command,
            (Words{"a", "--betas", "[0.9,0.95]", "--x=", "{}"}));
  EXPECT_EQ(launch_of({"launch", "a", "--nproc", "7"}).command, (Words{"a", "--nproc", "7"}));
}

TEST(Options, the_engines_commands_get_everything_untouched) {
  for (const char* const command : {"train", "sample", "plan", "encode", "decode", "reconstruct"}) {
    const auto line = parse({command, "--help", "--", "x"});
    ASSERT_TRUE(line.ok());
    EXPECT_EQ(std::get<EngineOptions>(*line),
              (EngineOptions{.command = command, .arguments = {"--help", "--", "x"}}));
    const auto help = std::get<ShowText>(*parse({"--help"})).text;
    EXPECT_NE(help.find(std::string("  trainer ") + command + " ARGUMENTS...\n"),
              std::string::npos);
  }
}

TEST(Options, prepare_gets_its_arguments_untouched) {
  const auto line = parse({"prepare", "--help", "--input", "x"});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(std::get<PrepareArguments>(*line).arguments, (Words{"--help", "--input", "x"}));
}

TEST(Options, help_and_version_are_shown) {
  EXPECT_EQ(std::get<ShowText>(*parse({"--version"})).text, "trainer 9.9\n");
  EXPECT_NE(std::get<ShowText>(*parse({"--help"})).text.find("Examples"), std::string::npos);
  EXPECT_NE(std::get<ShowText>(*parse({"launch", "--help"})).text.find("--grace-seconds"),
            std::string::npos);
}

TEST(Options, the_place_is_said_to_launch_and_to_env_alike) {
  const IdentityOptions expected{.place = {.world_size = 16,
                                           .gpus_per_node = 8,
                                           .rank = 9,
                                           .local_rank = 1,
                                           .node_rank = 1,
                                           .master_port = 4000,
                                           .master_addr = "a"},
                                 .convention = Convention::pet};
  Words flags{"--world-size",
              "16",
              "--gpus-per-node=8",
              "--rank",
              "9",
              "--local-rank",
              "1",
              "--node-rank",
              "1",
              "--master-port",
              "4000",
              "--master-addr",
              "a",
              "--convention",
              "pet"};
  flags.insert(flags.begin(), "env");
  const auto env = parse(flags);
  ASSERT_TRUE(env.ok()) << describe(env.error());
  EXPECT_EQ(std::get<EnvOptions>(*env), (EnvOptions{.identity = expected, .explain = false}));
  flags[0] = "launch";
  flags.insert(flags.end(), {"--", "run"});
  EXPECT_EQ(launch_of(flags).identity, expected);
}

TEST(Options, wrong_ones_are_named) {
  EXPECT_EQ(error_of({"env", "--rank", "-1"}),
            "--rank: is \"-1\"; it must be a whole number from 0");
  EXPECT_EQ(error_of({"env", "--convention", "mpi"}),
            "--convention: is \"mpi\"; it must be workers, processes, pet, nnodes, slurm or none");
  EXPECT_EQ(error_of({"env", "--grace-seconds", "1"}),
            "--grace-seconds: is not an option of trainer env; see trainer env --help");
  EXPECT_EQ(error_of({"env", "train.py"}),
            "train.py: is not an option of trainer env; see trainer env --help");
  EXPECT_EQ(error_of({"check", "--data", ""}), "--data: is empty; it must be a path");
  EXPECT_EQ(error_of({}),
            "trainer: no command; it must be launch, env, check, prepare, export, train, sample, "
            "plan, encode, decode, act, generate or reconstruct");
  EXPECT_EQ(error_of({"lunch"}),
            "trainer: \"lunch\" is not a command; it must be launch, env, check, prepare, export, "
            "train, sample, plan, encode, decode, act, generate or reconstruct");
  EXPECT_EQ(error_of({"launch"}),
            "trainer launch: no command; give one after --, as in trainer launch -- python3 "
            "train.py");
  EXPECT_EQ(error_of({"launch", "--nproc"}),
            "--nproc: has no value; it must be auto or a number of processes");
  EXPECT_EQ(error_of({"launch", "--nproc", "0", "--", "a"}),
            "--nproc: is \"0\"; it must be auto or a number from 1 to 1024");
  EXPECT_EQ(error_of({"launch", "--nproc=many", "--", "a"}),
            "--nproc: is \"many\"; it must be auto or a number from 1 to 1024");
  EXPECT_EQ(error_of({"launch", "--grace-seconds", "-1", "--", "a"}),
            "--grace-seconds: is \"-1\"; it must be a whole number from 0 to 86400");
  EXPECT_EQ(error_of({"launch", "--ranks", "2", "--", "a"}),
            "--ranks: is not an option of trainer launch; see trainer launch --help");
  EXPECT_EQ(error_of({"launch", "--ranks=2", "--", "a"}),
            "--ranks: is not an option of trainer launch; see trainer launch --help");
}

TEST(Options, a_value_that_was_left_out_is_not_the_next_word) {
  EXPECT_EQ(error_of({"check", "--out=", "--json"}), "--out: has no value; it must be a path");
  EXPECT_EQ(error_of({"launch", "--nproc=", "--", "a"}),
            "--nproc: has no value; it must be auto or a number of processes");
  EXPECT_EQ(launch_of({"launch", "--", "a", "--nproc="}).command, (Words{"a", "--nproc="}));
}

TEST(Options, of_what_is_given_twice_the_last_holds_and_paths_add_up) {
  EXPECT_EQ(launch_of({"launch", "--max-restarts", "1", "--max-restarts=2", "a"}).max_restarts, 2);
  const auto line = parse({"check", "--data", "a", "--data=[b,c]", "--json"});
  ASSERT_TRUE(line.ok()) << describe(line.error());
  EXPECT_EQ(std::get<CheckOptions>(*line), (CheckOptions{.data = {"a", "[b,c]"}, .json = true}));
}

}  // namespace
}  // namespace tj::trainer
