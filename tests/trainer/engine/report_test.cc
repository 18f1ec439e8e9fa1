#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trainer/report/progress.h"
#include "trainer/report/settings.h"

namespace tj::trainer {
namespace {

constexpr StepReport kReport{
    .step = 12, .steps = 300, .loss = 3.12341, .lr = 6e-4, .seconds = 0.125, .tokens = 2048};

TEST(Progress, a_step_is_one_line) {
  EXPECT_EQ(step_line(kReport), "step 12/300 | loss 3.1234 | lr 6.0e-04 | 16384 tok/s | 0.125 s");
}

TEST(Progress, the_json_line_keeps_every_bit_of_the_loss) {
  StepReport report = kReport;
  report.loss = 0.1 + 0.2;
  const auto document = nlohmann::json::parse(step_json(report));
  EXPECT_EQ(document.at("loss").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(document.at("step"), 12);
}

TEST(Settings, the_table_is_aligned) {
  const Setting rows[] = {{"lr", "0.003", "preset gpt2-nano"}, {"batch-size", "32", "flag"}};
  EXPECT_EQ(render_settings(rows),
            "setting     value  from\n"
            "lr          0.003  preset gpt2-nano\n"
            "batch-size  32     flag\n");
}

TEST(Settings, large_numbers_are_grouped) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1'000), "1,000");
  EXPECT_EQ(grouped(124'439'808), "124,439,808");
  EXPECT_EQ(grouped(-1'000), "-1,000");
}

}  // namespace
}  // namespace tj::trainer
