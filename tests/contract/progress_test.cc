#include "contract/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tj {
namespace {
using ::testing::HasSubstr;

Progress whole() {
  return {.attempt = 2,
          .phase = "step",
          .step = 120,
          .steps = 1000,
          .loss = 3.125,
          .tokens_per_second = 1234.5,
          .mfu = 0.25,
          .eta_seconds = 234.0,
          .last_checkpoint = SavedStep{.step = 100, .path = "/out/step-100"},
          .heartbeat_age_seconds = 0.5,
          .stalled = {{.rank = 3, .node = "b", .phase = "save", .seconds = 12.5}}};
}

TEST(Progress, comes_back_as_it_was_written) {
  const auto read = from_progress_document(to_progress_document(whole()));
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, whole());
}

TEST(Progress, leaves_out_what_is_not_known) {
  Progress progress;
  progress.step = 3;
  progress.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(to_progress_document(progress), R"({"attempt":0,"heartbeatAgeSeconds":0.0,"step":3})");
}

TEST(Progress, of_any_program_needs_a_step_only) {
  const auto read = from_progress_document(R"({"step": 7, "loss": null, "colour": "red"})");
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->step, 7);
  EXPECT_FALSE(read->loss);
}

TEST(Progress, names_the_field_that_is_wrong) {
  const auto complaint = [](const std::string& text) {
    const auto read = from_progress_document(text);
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(complaint("<html>"), "not a JSON object");
  EXPECT_EQ(complaint("[]"), "not a JSON object");
  EXPECT_EQ(complaint("{}"), "step is missing");
  EXPECT_EQ(complaint(R"({"step": "7"})"), R"(step is "7", and must be an integer)");
  EXPECT_EQ(complaint(R"({"step": 7, "loss": []})"), "loss is [], and must be a number");
  EXPECT_EQ(complaint(R"({"step": 7, "lastCheckpoint": {"path": 1}})"),
            "lastCheckpoint.path is 1, and must be a string");
  EXPECT_EQ(complaint(R"({"step": 7, "stalled": [4]})"), "stalled holds 4, and must hold objects");
  EXPECT_EQ(complaint(R"({"step": 7, "stalled": [{"rank": true}]})"),
            "stalled[].rank is true, and must be an integer");
  EXPECT_EQ(complaint(R"({"step": 9223372036854775808})"),
            "step is 9223372036854775808, which is too large");
  EXPECT_EQ(complaint(R"({"step": 7, "attempt": 4294967296})"),
            "attempt is 4294967296, which is too large");
  EXPECT_EQ(complaint(R"({"step": 7, "loss": 1e400})"), "not a JSON object");
  EXPECT_THAT(complaint(std::string(kProgressBytesMax + 1, ' ')), HasSubstr("may have 16384"));
}

}  // namespace
}  // namespace tj
