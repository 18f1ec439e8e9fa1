#include "contract/outcome.h"

#include <gtest/gtest.h>

namespace tj {
namespace {

TEST(ExitCodes, what_a_retry_can_not_mend_is_permanent) {
  for (const int code : {exit_code::kUsage, exit_code::kBadData, exit_code::kBadConfig})
    EXPECT_TRUE(is_permanent(code)) << code;
  for (const int code : {1, exit_code::kRendezvous, exit_code::kInternal, exit_code::kInterrupted,
                         exit_code::kPeerLost, exit_code::kSignalBase + 9})
    EXPECT_FALSE(is_permanent(code)) << code;
}

TEST(Outcome, what_the_trainer_writes_the_operator_reads) {
  const Outcome full{.reason = "PeerLost",
                     .message = "rank 1 went away: \"reset\"\n",
                     .rank = 0,
                     .step = 120,
                     .attempt = 2};
  const Outcome bare{.reason = "BadConfig", .message = "", .rank = {}, .step = {}};
  for (const Outcome& outcome : {full, bare}) {
    const auto read = from_termination_message(to_termination_message(outcome));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, outcome);
  }
}

TEST(Outcome, a_long_message_is_cut_to_what_kubelet_keeps) {
  for (const char* unit : {"x", "\n", "ä", "\x01"}) {
    Outcome outcome{.reason = "Internal", .message = "", .rank = {}, .step = {}};
    while (outcome.message.size() < 3 * kTerminationMessageBytesMax) outcome.message += unit;
    const std::string text = to_termination_message(outcome);
    EXPECT_LE(text.size(), kTerminationMessageBytesMax);
    const auto read = from_termination_message(text);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->message.substr(0, 60), outcome.message.substr(0, 60));
  }
}

TEST(Outcome, a_checkpoint_without_a_step_is_none) {
  const auto read = [](const std::string& saved) {
    return from_termination_message(R"({"reason":"x","message":"y","lastCheckpoint":)" + saved +
                                    "}")
        ->last_checkpoint;
  };
  EXPECT_EQ(read(R"({"step":7,"path":"/out/step-7"})"),
            (SavedStep{.step = 7, .path = "/out/step-7"}));
  EXPECT_EQ(read(R"({"step":7,"path":[]})"), (SavedStep{.step = 7, .path = {}}));
  for (const char* saved : {"{}", "7", "[]", R"({"step":"7"})", R"({"path":"/out"})"})
    EXPECT_FALSE(read(saved)) << saved;
}

TEST(Outcome, a_path_that_does_not_fit_is_left_out) {
  const std::string path(2 * kTerminationMessageBytesMax, 'p');
  const std::string text =
      to_termination_message({.reason = "Finished",
                              .message = "x",
                              .last_checkpoint = SavedStep{.step = 7, .path = path}});
  EXPECT_LE(text.size(), kTerminationMessageBytesMax);
  const auto read = from_termination_message(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->message, "x");
  EXPECT_EQ(read->last_checkpoint, (SavedStep{.step = 7, .path = {}}));
}

TEST(Outcome, anything_else_is_refused) {
  for (const char* text : {"", "Traceback", "{", "[]", "{\"reason\": 3, \"message\": \"x\"}",
                           "{\"reason\": \"x\"}", "null"}) {
    EXPECT_FALSE(from_termination_message(text).ok()) << text;
  }
}

TEST(ExitCode, is_described_in_words) {
  EXPECT_EQ(describe_exit_code(0), "done");
  EXPECT_EQ(describe_exit_code(3), "exit code 3");
  EXPECT_EQ(describe_exit_code(exit_code::kBadConfig), "bad configuration (exit code 78)");
  EXPECT_EQ(describe_exit_code(137), "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(describe_exit_code(143), "killed by signal 15 (SIGTERM)");
  EXPECT_EQ(describe_exit_code(255), "exit code 255");
}

TEST(TerminationMessage, a_reason_without_end_is_cut_as_well) {
  std::string reason;
  for (int i = 0; i < 5'000; ++i) reason += "\xc3\xa9";
  const std::string text = to_termination_message({.reason = reason, .message = "x"});
  EXPECT_LE(text.size(), kTerminationMessageBytesMax);
  EXPECT_TRUE(from_termination_message(text).ok());
}

}  // namespace
}  // namespace tj
