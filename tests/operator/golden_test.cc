// Runs the stories under tests/golden/plan. To accept new output after reading the difference:
//   TJ_UPDATE_GOLDEN=1 build/dev/tests/operator/test_operator_core --gtest_filter='Golden*'
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/operator/story.h"
#include "tests/places.h"

namespace tj {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> story_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_dir() + "/tests/golden/plan")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

fs::path path_of(const std::string& name) {
  return fs::path(source_dir() + "/tests/golden/plan") / (name + ".txt");
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, story_is_told_as_written) {
  const fs::path path = path_of(GetParam());
  auto blocks = parse_story(read(path));
  ASSERT_FALSE(blocks.empty());
  const auto expected = to_text(blocks);
  Story story;
  for (StoryBlock& block : blocks) {
    block.expected.clear();
    for (const std::string& step : block.steps) block.expected += story.run(step);
  }
  if (std::getenv("TJ_UPDATE_GOLDEN") != nullptr)
    std::ofstream(path) << to_text(blocks);
  else
    EXPECT_EQ(to_text(blocks), expected);
}

TEST_P(Golden, story_ends_the_same_when_the_operator_dies_after_each_write) {
  Story undisturbed;
  Story disturbed(/*crash_after_each_write=*/true);
  const auto blocks = parse_story(read(path_of(GetParam())));
  ASSERT_FALSE(blocks.empty());
  for (const StoryBlock& block : blocks) {
    for (const std::string& step : block.steps) {
      undisturbed.run(step);
      disturbed.run(step);
    }
  }
  EXPECT_EQ(disturbed.world().job, undisturbed.world().job);
  EXPECT_EQ(disturbed.world().pods.size(), undisturbed.world().pods.size());
}

INSTANTIATE_TEST_SUITE_P(Plan, Golden, testing::ValuesIn(story_names()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace tj
