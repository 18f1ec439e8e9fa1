#include "trainer/data/lerobot/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "trainer/data/lerobot/lerobot_set.h"

namespace tj::trainer {
namespace {

RobotStatistics example() {
  return {.state_name = "observation.state",
          .action_name = "action",
          .state = {.count = 4,
                    .min = {-1, 0},
                    .max = {2, 0},
                    .mean = {0.1, 0},
                    .std = {0.25, 0},
                    .q01 = {-1, 0},
                    .q99 = {2, 0}},
          .action = {.count = 4, .min = {0}, .max = {1}, .mean = {0.5}, .std = {2}},
          .rule = {.is_delta = {true}, .horizon = 5},
          .data_set = "reach",
          .fingerprint = "0123456789abcdef"};
}

LeRobotSet set_at(const std::filesystem::path& folder) {
  LeRobotSet set{.folder = folder, .name = "reach"};
  set.fingerprint = "0123456789abcdef";
  return set;
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

TEST(Statistics, come_back_as_they_were_written) {
  const auto again = statistics_from(statistics_json(example()));
  ASSERT_TRUE(again);
  EXPECT_EQ(statistics_json(*again), statistics_json(example()));
  EXPECT_EQ(again->state, example().state);
  auto uncounted = example();
  uncounted.state.count = 0;
  EXPECT_EQ(statistics_from(statistics_json(uncounted))->state, uncounted.state);
  EXPECT_EQ(describe(statistics_from("{\"version\":2}").error()),
            "version must be a whole number from 1 to 1, and is 2");
  EXPECT_EQ(describe(statistics_from("[]").error()), "is no JSON object");
}

TEST(Statistics, of_another_data_set_or_other_actions_are_refused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "stats.json";
  write(file, statistics_json(example()));
  auto set = set_at(folder.path());
  EXPECT_TRUE(statistics_for(set, file, example()));
  auto wanted = example();
  wanted.rule.horizon = 6;
  EXPECT_EQ(statistics_for(set, file, wanted).error().message,
            "are statistics of actions minus the state in dimensions 0, over 5 steps, and not of "
            "actions minus the state in dimensions 0, over 6 steps; `trainer prepare lerobot` "
            "makes those of this one");
  wanted.rule = {.is_delta = {false}, .horizon = 6};
  EXPECT_NE(statistics_for(set, file, wanted).error().message.find("not of actions as they are"),
            std::string::npos);
  set.name = "lift";
  set.fingerprint = "fedcba9876543210";
  const auto refused = statistics_for(set, file, example());
  EXPECT_EQ(describe(refused.error()),
            file.string() +
                ": are statistics of another data set, reach (fingerprint 0123456789ab), and not "
                "of lift (fedcba987654); `trainer prepare lerobot` makes those of this one");
}

TEST(Statistics, of_the_data_set_itself_are_found_and_joined) {
  const TemporaryFolder folder;
  const auto set = set_at(folder.path());
  RobotStatistics wanted{.state_name = "observation.state", .action_name = "action"};
  EXPECT_NE(statistics_for(set, "", wanted).error().message.find("has no statistics"),
            std::string::npos);
  // Of 1 and 3, then of 5: mean 3, and squares of distances 8 in three.
  const auto line = [](double mean, double std, int count) {
    const nlohmann::json stats{{"min", {mean - std}},
                               {"max", {mean + std}},
                               {"mean", {mean}},
                               {"std", {std}},
                               {"count", {count}}};
    return nlohmann::json{{"episode_index", 0},
                          {"stats", {{"observation.state", stats}, {"action", stats}}}}
               .dump() +
           "\n";
  };
  const auto lines = folder.path() / "meta" / "episodes_stats.jsonl";
  write(lines, line(2, 1, 2) + line(5, 0, 1));
  const auto joined = statistics_for(set, "", wanted);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->state.count, 3);
  EXPECT_DOUBLE_EQ(joined->state.mean[0], 3);
  EXPECT_DOUBLE_EQ(joined->state.std[0], std::sqrt(8.0 / 3));
  EXPECT_EQ(joined->state.min[0], 1);
  EXPECT_EQ(joined->state.max[0], 5);
  write(lines, line(2, 1, 2) + "{\"stats\":{}}\n");
  EXPECT_EQ(describe(statistics_for(set, "", wanted).error()),
            lines.string() + ": line 2: stats.observation.state is missing");
  wanted.rule = {.is_delta = {true}, .horizon = 5};
  EXPECT_NE(statistics_for(set, "", wanted).error().message.find("--delta-actions"),
            std::string::npos);
}

TEST(Normaliser, follows_lerobots_rules_and_back) {
  FeatureStatistics of{.mean = {1, 2}, .std = {0.5, 0}, .q01 = {-1, 3}, .q99 = {3, 3}};
  const auto by_mean = Normaliser::make(Normalisation::mean_std, of, 2, "action");
  ASSERT_TRUE(by_mean);
  std::vector<float> values{2, 2, 0.5F, 2};
  by_mean->apply(values);
  EXPECT_EQ(values, (std::vector<float>{1 / (0.5F + 1e-8F), 0, -0.5F / (0.5F + 1e-8F), 0}));
  by_mean->undo(values);
  EXPECT_FLOAT_EQ(values[0], 2);
  EXPECT_FLOAT_EQ(values[3], 2);
  const auto by_quantile = Normaliser::make(Normalisation::quantiles, of, 2, "action");
  ASSERT_TRUE(by_quantile);
  values = {-1, 3, 3, 3};
  by_quantile->apply(values);
  EXPECT_EQ(values, (std::vector<float>{-1, -1, 1, -1}));
  by_quantile->undo(values);
  EXPECT_EQ(values, (std::vector<float>{-1, 3, 3, 3}));
}

TEST(Normaliser, says_what_statistics_lack) {
  const FeatureStatistics of{.mean = {1}, .std = {1}};
  EXPECT_EQ(describe(Normaliser::make(Normalisation::quantiles, of, 1, "action").error()),
            "action: its statistics have q01 and q99 of 0 and 0 dimensions, and it has 1; "
            "`trainer prepare lerobot` makes those of this one");
  EXPECT_TRUE(Normaliser::make(Normalisation::none, of, 3, "action"));
  const FeatureStatistics nan{.mean = {NAN}, .std = {1}};
  EXPECT_EQ(describe(Normaliser::make(Normalisation::mean_std, nan, 1, "action").error()),
            "action: its statistics are not finite in dimension 0");
}

}  // namespace
}  // namespace tj::trainer
