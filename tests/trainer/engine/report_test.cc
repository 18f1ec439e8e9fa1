#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "trainer/report/progress.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {

const StepReport kReport{.step = 12,
                         .steps = 300,
                         .loss = 3.12341,
                         .lr = 6e-4,
                         .seconds = 0.125,
                         .unit = {.name = "tokens", .short_name = "tok"},
                         .units = 2048};

TEST(Progress, a_step_is_one_line) {
  EXPECT_EQ(step_line(kReport), "step 12/300 | loss 3.1234 | lr 6.0e-04 | 16384 tok/s | 0.125 s");
}

TEST(Progress, a_workload_has_its_own_unit_and_metrics) {
  StepReport report = kReport;
  report.unit = {.name = "frames", .short_name = "frames"};
  report.metrics = {{.name = "psnr", .label = "PSNR", .unit = "dB", .decimals = 1, .value = 18.51}};
  EXPECT_EQ(step_line(report),
            "step 12/300 | loss 3.1234 | PSNR 18.5 dB | lr 6.0e-04 | 16384 frames/s | 0.125 s");
  const auto document = nlohmann::json::parse(step_json(report));
  EXPECT_EQ(document.at("psnr"), 18.51);
  EXPECT_EQ(document.at("frames_per_second"), 16384);
  EXPECT_NE(progress_bar(report, 100, false).find("| PSNR 18.5 dB | 16384 frames/s"),
            std::string::npos);
}

TEST(Progress, the_wait_for_other_ranks_is_told_where_there_are_any) {
  StepReport report = kReport;
  EXPECT_FALSE(nlohmann::json::parse(step_json(report)).contains("exposed_communication_ms"));
  report.exposed_seconds = 0.25;
  EXPECT_EQ(nlohmann::json::parse(step_json(report)).at("exposed_communication_ms"), 250);
}

TEST(Progress, a_line_in_a_platforms_words_says_the_same) {
  StepReport report = kReport;
  report.metrics = {{.name = "psnr", .label = "PSNR", .unit = "dB", .decimals = 1, .value = 18.51}};
  EXPECT_EQ(step_line(report, *log_style_from("platform")),
            "Step 12/300 | Loss: 3.1234 | PSNR: 18.5 dB | lr 6.0e-04 | 16384 tok/s | 0.125 s");
  EXPECT_EQ(step_line(report, *log_style_from("trainer")), step_line(report));
  EXPECT_FALSE(log_style_from("Platform"));
}

TEST(Progress, a_line_has_what_is_known) {
  StepReport report = kReport;
  report.mfu = 0.4125;
  report.eta_seconds = 3725;
  EXPECT_TRUE(step_line(report).ends_with(" | 0.125 s | mfu 41.2 % | eta 1:02:05"));
}

TEST(Progress, durations_are_read_at_a_glance) {
  EXPECT_EQ(time_left_text(0), "0:00");
  EXPECT_EQ(time_left_text(35.2), "0:35");
  EXPECT_EQ(time_left_text(3599.6), "1:00:00");
  EXPECT_EQ(time_left_text(90'061), "1d 1:01:01");
  EXPECT_EQ(time_left_text(1e300), "36500d 0:00:00");
}

TEST(Progress, the_bar_fits_the_terminal) {
  StepReport report = kReport;
  report.eta_seconds = 36;
  EXPECT_EQ(progress_bar(report, 80, false),
            "[#------------------------------] 12/300 | loss 3.1234 | 16384 tok/s | eta 0:36");
  for (int columns = 1; columns < 120; ++columns)
    EXPECT_LT(progress_bar(report, columns, false).size(),
              static_cast<std::size_t>(std::max(2, columns)));
  report.step = 300;
  EXPECT_TRUE(
      progress_bar(report, 200, true).starts_with("[\033[32m" + std::string(40, '#') + "\033[0m]"));
}

TEST(Progress, the_pace_is_that_of_the_last_steps) {
  Pace pace;
  Pace::Clock::time_point now{};
  pace.step_done(now);
  EXPECT_FALSE(pace.seconds_per_step());
  for (int step = 0; step < 40; ++step) pace.step_done(now += std::chrono::seconds(10));
  for (int step = 0; step < 31; ++step) pace.step_done(now += std::chrono::seconds(2));
  EXPECT_EQ(pace.seconds_per_step(), 2);
}

TEST(Progress, the_json_line_keeps_every_bit_of_the_loss) {
  StepReport report = kReport;
  report.loss = 0.1 + 0.2;
  const auto document = nlohmann::json::parse(step_json(report));
  EXPECT_EQ(document.at("loss").get<double>(), 0.1 + 0.2);
  EXPECT_EQ(document.at("step"), 12);
}

TEST(Progress, an_evaluation_is_one_line_and_one_event) {
  const EvalReport report{
      .step = 100, .loss = 0.1 + 0.2, .counted = "targets", .weight = 32768, .seconds = 0.414};
  EXPECT_EQ(eval_line(report), "eval after step 100 | loss 0.3000 | 32768 targets in 0.41 s");
  EXPECT_EQ(
      eval_json(report),
      R"({"event":"eval","at_step":100,"eval_loss":0.30000000000000004,"targets":32768,"seconds":0.414})");
}

TEST(Progress, a_checked_reduction_is_one_line_and_one_event) {
  ReductionReport report{.step = 100, .codec = "int8", .cosine = 0.99914, .cosine_min = 0.9};
  EXPECT_EQ(reduction_line(report),
            "reduce int8 | cosine to the exact gradient 0.9991 at step 100");
  EXPECT_EQ(reduction_json(report),
            R"({"event":"reduce","at_step":100,"codec":"int8","cosine":0.99914,"gave_up":false})");
  report.cosine = 0.0123;
  EXPECT_EQ(given_up_line(report),
            "reduce int8 is given up: the cosine 0.0123 is below 0.9 (--reduce-check-min); from "
            "step 101 on gradients are reduced exactly");
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
