// What `trainer plan` says, as golden text: system S2, whose users expected an efficiency of 80 %.
#include "trainer/predict/forecast.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

/// A second of computing in 8 passes of 16 samples, two nodes, one gigabit.
ForecastInputs s2() {
  ForecastInputs inputs{.model = "gpt2-tiny",
                        .micro_batch = 16,
                        .steps = 1000,
                        .units_of_sample = 512,
                        .unit = "tokens",
                        .gradients = gpt2_tiny(),
                        .compute_origin = "--step-seconds 1",
                        .link_origin = "--link 117MB/s",
                        .activations_origin = "as given"};
  inputs.step = {.ranks = 2,
                 .passes = 8,
                 .compute = {.forward_s = 1.0 / 24, .backward_s = 1.0 / 12},
                 .link = {.bytes_per_second = kGigabit, .latency_s = 1e-4}};
  inputs.memory = {.trained_elements = element_count(inputs.gradients),
                   .block_elements = 26'000'000,
                   .ranks = 2,
                   .activation_bytes = 5e9,
                   .data_bytes = 1e6,
                   .process_bytes = 3e8};
  inputs.memory_room = {.micro_batch = 16, .accumulation = 8};
  inputs.room = {.bytes = 4e9, .origin = "of this machine"};
  return inputs;
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = source_dir() + "/tests/golden/forecast/" + name;
  if (std::getenv("TJ_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path;
}

TEST(Forecast, in_words) { expect_golden("s2.txt", forecast_text(forecast_of(s2()))); }

TEST(Forecast, as_a_picture) { expect_golden("s2.svg", forecast_picture(forecast_of(s2()))); }

TEST(Forecast, of_one_rank_says_nothing_of_a_wire) {
  auto inputs = s2();
  inputs.step.ranks = inputs.memory.ranks = 1;
  inputs.room = {};
  const auto text = forecast_text(forecast_of(inputs));
  EXPECT_NE(text.find("nothing: a single rank"), std::string::npos) << text;
  EXPECT_EQ(text.find("--reduce"), std::string::npos) << text;
  EXPECT_EQ(text.find("by --zero"), std::string::npos) << text;
}

TEST(Forecast, of_zero_has_one_form_of_gradients) {
  auto inputs = s2();
  inputs.step.zero_stage = inputs.memory.zero_stage = 2;
  inputs.step.reduction.codec = Codec::int8;
  const auto forecast = forecast_of(inputs);
  EXPECT_EQ(forecast.own, (ReduceChoice{.passes = 8, .codec = Codec::fp32}));
  EXPECT_NE(forecast_text(forecast).find("in --zero 2"), std::string::npos);
  inputs.step.ranks = 4;
  inputs.step.zero_group = 2;
  EXPECT_NE(forecast_text(forecast_of(inputs)).find("in --zero 2 --zero-group 2,"),
            std::string::npos);
}

TEST(Forecast, what_does_not_fit_is_said_with_what_would) {
  EXPECT_EQ(shortage_text(forecast_of(s2())),
            "a rank needs 6.9 GB, and has 4.0 GB of this machine; --accumulation 32 (4 in a pass) "
            "fits");
  auto inputs = s2();
  inputs.room.bytes = 1e8;
  EXPECT_EQ(shortage_text(forecast_of(inputs)),
            "a rank needs 6.9 GB, and has 100 MB of this machine; no stage of ZeRO and no smaller "
            "pass makes it fit on 2 ranks");
  inputs.room.bytes = 8e9;
  EXPECT_EQ(shortage_text(forecast_of(inputs)), "");
}

TEST(Forecast, flags_of_the_model_that_take_less_are_told) {
  auto inputs = s2();
  inputs.room.bytes = 1e8;
  inputs.memory.held = {{.name = "frozen VGGT", .bytes = 1.8e9}};
  auto forecast = forecast_of(std::move(inputs));
  forecast.remedies = {{.flag = "--recompute", .bytes = 2e8},
                       {.flag = "--max-history-images 4", .bytes = 9e7}};
  EXPECT_NE(shortage_text(forecast).find("; --max-history-images 4 fits"), std::string::npos);
  const auto text = forecast_text(forecast);
  EXPECT_NE(text.find("  frozen VGGT               1.8 GB"), std::string::npos) << text;
  EXPECT_NE(text.find("  takes less: with --recompute 200 MB, with --max-history-images 4 90 MB"),
            std::string::npos)
      << text;
  EXPECT_EQ(forecast_json(forecast)["memory"]["remedies"][1]["flag"], "--max-history-images 4");
}

TEST(Forecast, as_json) {
  const auto document = forecast_json(forecast_of(s2()));
  EXPECT_EQ(document["setting"]["reduce"], "fp32");
  EXPECT_EQ(document["batch_size"], 256);
  EXPECT_EQ(document["table"].size(), 30U);
  EXPECT_FALSE(document["memory"]["fits"].get<bool>());
  EXPECT_EQ(document["recommended"]["accumulation"], 32);
  EXPECT_EQ(document["memory"]["by_zero_stage"].size(), 4U);
}

TEST(Forecast, seconds_and_bytes_in_words) {
  EXPECT_EQ(seconds_text(0), "0 ms");
  EXPECT_EQ(seconds_text(0.0001), "0.1 ms");
  EXPECT_EQ(seconds_text(0.0042), "4.2 ms");
  EXPECT_EQ(seconds_text(0.042), "0.04 s");
  EXPECT_EQ(seconds_text(1.716), "1.72 s");
  EXPECT_EQ(seconds_text(600), "10 min");
  EXPECT_EQ(seconds_text(3 * 3600), "3.0 h");
  EXPECT_EQ(seconds_text(5 * 86400), "5.0 days");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(200.8e6), "201 MB");
  EXPECT_EQ(bytes_text(1.74e9), "1.7 GB");
}

}  // namespace
}  // namespace tj::trainer
