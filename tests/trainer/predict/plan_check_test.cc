// The prediction that a run is held to.
#include "trainer/predict/plan_check.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

constexpr SeenStep kFirst{.step_s = 100, .waited_s = 90};
/// Two passes of 0.1 s + 0.2 s, an update of 0.05 s, a wait of 0.5 s, data for 0.02 s.
constexpr SeenStep kSeen{
    .step_s = 1.17, .forward_s = 0.2, .update_s = 0.05, .waited_s = 0.5, .other_s = 0.02};

PlanCheck begun() {
  PlanCheck check({.ranks = 2, .passes = 2, .gradients = of_elements(10'000'000)});
  check.add(kFirst);
  for (int step = 2; step <= PlanCheck::kLearned; ++step) {
    EXPECT_FALSE(check.wants_link());
    check.add(kSeen);
  }
  return check;
}

TEST(PlanCheck, compares_what_the_first_steps_and_the_link_promise) {
  auto check = begun();
  EXPECT_TRUE(check.wants_link());
  check.set_link({.bytes_per_second = 100e6});
  EXPECT_FALSE(check.wants_link());
  auto later = kSeen;
  later.step_s += 0.1;
  later.waited_s += 0.1;
  for (int step = 0; step < PlanCheck::kCompared; ++step) {
    EXPECT_FALSE(check.verdict());
    check.add(later);
  }
  const auto verdict = check.verdict();
  ASSERT_TRUE(verdict);
  EXPECT_NEAR(verdict->predicted.compute_s, 0.65, 1e-9);
  EXPECT_NEAR(verdict->predicted.exposed_s, 0.4, 1e-9);  // one bucket, complete at the end
  EXPECT_NEAR(verdict->measured_s, 1.25, 1e-9);
  EXPECT_EQ(verdict->line(),
            "predicted 1.05 s a step, measured 1.25 s (+19.0 %) over steps 11 to 60: exposed "
            "communication 0.40 s predicted, 0.60 s measured | 100 MB/s each way");
  const auto event = nlohmann::json::parse(verdict->json(60));
  EXPECT_EQ(event["event"], "prediction");
  EXPECT_EQ(event["at_step"], 60);
  EXPECT_NEAR(event["predicted_seconds"].get<double>(), 1.05, 1e-9);
  check.add(later);
  EXPECT_FALSE(check.verdict());
}

TEST(PlanCheck, says_nothing_without_a_link) {
  auto check = begun();
  for (int step = 0; step < PlanCheck::kCompared; ++step) check.add(kSeen);
  EXPECT_FALSE(check.verdict());
}

}  // namespace
}  // namespace tj::trainer
