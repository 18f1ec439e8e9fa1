// The simulation itself: a world replays exactly, a sample of worlds holds, and each planted bug is
// found. The long run is test_simulation's (tests/sim/run).
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/sanitized.h"
#include "tests/sim/world.h"

namespace tj::sim {
namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr int kSampleWorlds = kIsSanitized ? 5 : 10;
constexpr long kFindingStepsMax = 200'000;

class Simulation : public testing::Test {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};

std::string last_lines(const World& world) {
  std::string text;
  for (const std::string& line : world.trace().lines()) text += line + "\n";
  return text;
}

TEST_F(Simulation, a_world_follows_from_its_seed_alone) {
  for (std::uint64_t number = 0; number < (kIsSanitized ? 1 : 3); ++number) {
    World first({.seed = world_seed(kSeed, number)});
    World second({.seed = world_seed(kSeed, number)});
    first.run();
    second.run();
    EXPECT_EQ(first.steps(), second.steps());
    EXPECT_EQ(first.trace().digest(), second.trace().digest());
  }
}

TEST_F(Simulation, every_invariant_holds_in_a_sample_of_worlds) {
  for (std::uint64_t number = 0; number < kSampleWorlds; ++number) {
    World world({.seed = world_seed(kSeed, number)});
    world.run();
    ASSERT_FALSE(world.violation()) << "world " << number << ": " << *world.violation() << "\n"
                                    << last_lines(world);
  }
}

class PlantedBug : public Simulation, public testing::WithParamInterface<Bug> {};

TEST_P(PlantedBug, is_found) {
  long steps = 0;
  for (std::uint64_t number = 0; steps < kFindingStepsMax; ++number) {
    World world({.seed = world_seed(kSeed, number), .bug = GetParam()});
    world.run();
    steps += world.steps();
    if (!world.violation()) continue;
    RecordProperty("steps", static_cast<int>(steps));
    std::printf("found after %ld steps: %s\n", steps, world.violation()->c_str());
    return;
  }
  FAIL() << "not found in " << steps << " steps";
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBug, testing::ValuesIn(kBugs), [](const auto& bug) {
  std::string name = to_string(bug.param);
  for (char& letter : name) letter = letter == '-' ? '_' : letter;
  return name;
});

}  // namespace
}  // namespace tj::sim
