#include "operator/loop/log_gate.h"

#include <gtest/gtest.h>

#include "operator/loop/log_text.h"

namespace tj {
namespace {
using namespace std::chrono_literals;

const SteadyTime kStart{1h};

TEST(LogGate, opens_for_a_new_cause_and_then_each_thirty_seconds) {
  LogGate gate;
  EXPECT_TRUE(gate.opens("refused", kStart));
  EXPECT_FALSE(gate.opens("refused", kStart + 29s));
  EXPECT_TRUE(gate.opens("forbidden", kStart + 29s));
  EXPECT_FALSE(gate.opens("refused", kStart + 29s)) << "two causes by turns are not news";
  EXPECT_TRUE(gate.opens("refused", kStart + 30s));
}

TEST(LogGate, opens_again_once_the_trouble_was_over) {
  LogGate gate;
  EXPECT_TRUE(gate.opens("refused", kStart));
  gate.reset();
  EXPECT_TRUE(gate.opens("refused", kStart + 1s));
}

TEST(LogText, a_value_stays_on_its_line_and_within_its_bound) {
  EXPECT_EQ(log_value("say \"no\"\nplease"), "\"say \\\"no\\\" please\"");
  EXPECT_EQ(log_value(std::string(10'000, 'x')).size(), kLogValueMax + 5);
}

}  // namespace
}  // namespace tj
