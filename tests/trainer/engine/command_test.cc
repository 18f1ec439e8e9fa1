// Commands of workloads: which there are, whose is meant, and what their flags say.
#include <gtest/gtest.h>

#include <set>

#include "trainer/launch/engine_commands.h"
#include "trainer/train/command.h"
#include "trainer/train/flags.h"
#include "trainer/workloads/registry.h"

namespace tj::trainer {
namespace {

std::optional<Failure> nothing(const CommandCall&) { return std::nullopt; }

constexpr Flag kOwnFlags[] = {{.name = "--in", .help = "what is read", .required = true}};
constexpr WorkloadCommand kCommands[] = {
    {.name = "try", .title = "Tries", .flags = kOwnFlags, .run = nothing}};
constexpr Preset kFirst[] = {{.name = "first"}, {.name = "first-large"}};
constexpr Preset kSecond[] = {{.name = "second"}};

WorkloadEntry entry(std::span<const Preset> presets, std::span<const WorkloadCommand> commands) {
  return {.name = "some", .presets = presets, .commands = commands, .make = nullptr};
}

TEST(WorkloadCommands, the_program_without_torch_knows_the_names_of_all) {
  std::set<std::string_view> of_workloads, known;
  for (const auto& workload : workloads())
    for (const auto& command : workload.commands) of_workloads.insert(command.name);
  for (const auto& command : kEngineCommands)
    if (command.name != "train" && command.name != "plan") known.insert(command.name);
  EXPECT_EQ(of_workloads, known);
  for (const auto name : known) EXPECT_TRUE(is_workload_command(workloads(), name));
  EXPECT_FALSE(is_workload_command(workloads(), "train"));
}

TEST(WorkloadCommands, the_only_workload_that_has_one_is_meant) {
  const WorkloadEntry registry[] = {entry(kSecond, {}), entry(kFirst, kCommands)};
  const auto choice = choose_command(registry, "try", {});
  ASSERT_TRUE(choice) << describe(choice.error());
  EXPECT_EQ(choice->entry, &registry[1]);
  EXPECT_EQ(choose_command(registry, "try", "first-large")->preset.name, "first-large");
  EXPECT_EQ(describe(choose_command(registry, "try", "second").error()),
            "--model: is \"second\", of which `trainer try` knows nothing; it must be one of "
            "first or first-large");
  EXPECT_EQ(describe(choose_command(registry, "try", "third").error()),
            "--model: is \"third\", of which `trainer try` knows nothing; it must be one of "
            "first or first-large");
}

TEST(WorkloadCommands, of_several_the_model_says_which) {
  const WorkloadEntry registry[] = {entry(kSecond, kCommands), entry(kFirst, kCommands)};
  EXPECT_EQ(choose_command(registry, "try", "first")->entry, &registry[1]);
  EXPECT_EQ(describe(choose_command(registry, "try", {}).error()),
            "--model: is not given; it must be one of second, first or first-large");
}

Result<ParsedFlags> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "try");
  const auto workload = entry(kFirst, kCommands);
  return parse_command_flags(static_cast<int>(words.size()), words.data(), workload, kCommands[0]);
}

TEST(WorkloadCommands, flags_read_as_those_of_a_training) {
  const auto given = parsed({"--in", "a", "--model=first", "--threads", "2"});
  ASSERT_TRUE(given) << describe(given.error());
  EXPECT_EQ(given->flags, (Flags{{"--in", "a"}, {"--model", "first"}, {"--threads", "2"}}));
  const auto error = [](std::vector<const char*> words) {
    const auto refused = parsed(std::move(words));
    return refused ? std::string() : describe(refused.error());
  };
  EXPECT_NE(error({"--in", "a", "--inn", "b"}).find("--inn"), std::string::npos);
  EXPECT_NE(error({"--in"}).find("--in"), std::string::npos);
  EXPECT_NE(error({}).find("--in is required"), std::string::npos);
  EXPECT_TRUE(error({}).ends_with("; `trainer try --help` lists the flags"));
  const auto help = parsed({"--help"});
  ASSERT_TRUE(help && help->shown);
  for (const char* const part : {"Tries.", "--in", "what is read", "--device", "--precision",
                                 "--threads", "first or first-large"})
    EXPECT_NE(help->shown->find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace tj::trainer
