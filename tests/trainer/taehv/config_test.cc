// Golden: ranks and flags -> what `--config` makes of them for a TAEHV. Each case of
// tests/golden/trainer/config_by_ranks.txt is a comment, "ranks N", "flag NAME VALUE", "----", and
// the rows of the start-up table that it decides, or the error.
// TJ_UPDATE_GOLDEN=1 writes the file anew; reviewing the difference is the work.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/trainer/golden_cases.h"
#include "trainer/train/plan.h"
#include "trainer/workloads/taehv/taehv_workload.h"

namespace tj::trainer {
namespace {

struct Case {
  int ranks = 1;
  Flags flags{{"--data", "videos"}, {"--out", "out"}};
};

void read_line(const std::string& line, Case& c) {
  std::istringstream words(line);
  std::string kind, name;
  words >> kind;
  if (kind == "ranks") words >> c.ranks;
  if (kind == "flag") {
    words >> name;
    words >> c.flags[name];
  }
}

Result<TrainPlan> plan_of(const Case& c) {
  const auto entry = taehv_entry();
  const auto model = c.flags.find("--model");
  const auto choice =
      choose_workload({&entry, 1}, model == c.flags.end() ? "taehv" : model->second);
  if (!choice) return choice.error();
  return make_plan(c.flags, c.ranks, choice->preset, *entry.make(choice->preset));
}

std::string answer_to(const Case& c) {
  const auto plan = plan_of(c);
  if (!plan) return describe(plan.error()) + "\n";
  std::vector<Setting> rows;
  for (const char* const name :
       {"config", "batch-size", "accumulation", "micro-batch", "lr", "data-threads"})
    rows.push_back(*std::ranges::find(plan->settings, name, &Setting::name));
  return render_settings(rows);
}

TEST(ConfigByRanks, is_that_of_the_golden_file) {
  expect_golden_cases<Case>("trainer/config_by_ranks.txt", 15, read_line, answer_to);
}

TEST(ConfigByRanks, a_flag_goes_before_its_precision_on_a_gpu) {
  static const NcclPlugin plugin{};
  const Accelerator gpu{.plugin = &plugin, .device = 0, .text = "a GPU"};
  const auto precision = [&](const Flags& more, const Accelerator& accelerator) {
    Case c{.ranks = 16};
    c.flags.insert(more.begin(), more.end());
    auto plan = plan_of(c);
    EXPECT_TRUE(plan && settle_device(*plan, accelerator));
    return *std::ranges::find(plan->settings, "precision", &Setting::name);
  };
  EXPECT_EQ(precision({}, gpu), (Setting{"precision", "bf16", "config taehv-16gpu"}));
  EXPECT_EQ(precision({}, {}), (Setting{"precision", "fp32", "default"}));
  EXPECT_EQ(precision({{"--precision", "fp16"}}, gpu), (Setting{"precision", "fp16", "flag"}));
}

TEST(ConfigByRanks, the_log_is_in_a_platforms_words_unless_a_flag_says_otherwise) {
  const auto style = [](const Flags& more, bool is_on_platform) {
    Case c;
    c.flags.insert(more.begin(), more.end());
    auto plan = plan_of(c);
    EXPECT_TRUE(plan);
    settle_log_style(*plan, {.is_on_platform = is_on_platform});
    const auto row = *std::ranges::find(plan->settings, "log-style", &Setting::name);
    EXPECT_EQ(plan->log_style, *log_style_from(row.value));
    return row;
  };
  EXPECT_EQ(style({}, false), (Setting{"log-style", "trainer", "default"}));
  EXPECT_EQ(style({}, true), (Setting{"log-style", "platform",
                                      "a platform's WORLD_SIZE and RANK, without an operator"}));
  EXPECT_EQ(style({{"--log-style", "trainer"}}, true), (Setting{"log-style", "trainer", "flag"}));
}

}  // namespace
}  // namespace tj::trainer
