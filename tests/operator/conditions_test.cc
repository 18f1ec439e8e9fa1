#include "operator/plan/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/result.h"
#include "operator/plan/reason.h"

namespace tj {
namespace {
using testing::ElementsAre;

/// Which condition is true in which phase: docs/trainingjob.md, "conditions".
struct Row {
  Phase phase;
  std::vector<std::string> is_true;
};
const Row kRows[] = {{Phase::pending, {}},
                     {Phase::starting, {}},
                     {Phase::running, {"Running"}},
                     {Phase::restarting, {"Restarting"}},
                     {Phase::suspended, {"Suspended"}},
                     {Phase::succeeded, {"Succeeded"}},
                     {Phase::failed, {"Failed"}}};

TimePoint at(int second) { return TimePoint{std::chrono::seconds{second}}; }

std::vector<std::string> types_of(const JobStatus& status, bool is_true) {
  std::vector<std::string> types;
  for (const Condition& condition : status.conditions)
    if (condition.status == is_true) types.push_back(condition.type);
  return types;
}

const Condition& condition_of(const JobStatus& status, const std::string& type) {
  const auto found =
      std::find_if(status.conditions.begin(), status.conditions.end(),
                   [&](const Condition& condition) { return condition.type == type; });
  TJ_CHECK(found != status.conditions.end(), type);
  return *found;
}

/// The job enters the phase.
void enter(TrainingJob& job, Phase phase, TimePoint now) {
  job.status.phase = phase;
  job.status.reason = "Because";
  job.status.message = "of this";
  set_conditions(job.status, job, now);
}

TEST(Conditions, the_table_has_each_phase) {
  EXPECT_EQ(std::size(kRows), static_cast<std::size_t>(Phase::failed) + 1);
  for (std::size_t row = 0; row < std::size(kRows); ++row)
    EXPECT_EQ(kRows[row].phase, static_cast<Phase>(row));
}

TEST(Conditions, in_each_phase_its_own_is_true_whatever_the_phase_before) {
  for (const Row& before : kRows) {
    for (const Row& row : kRows) {
      TrainingJob job;
      enter(job, before.phase, at(1));
      enter(job, row.phase, at(2));
      EXPECT_EQ(types_of(job.status, true), row.is_true) << to_string(row.phase);
      EXPECT_EQ(job.status.conditions.size(), 5u) << "the others are there, and false";
      for (const Condition& condition : job.status.conditions) {
        EXPECT_EQ(condition.reason, "Because");
        EXPECT_EQ(condition.message, condition.status ? "of this" : "");
      }
    }
  }
}

TEST(Conditions, the_time_is_that_of_the_last_change) {
  TrainingJob job;
  enter(job, Phase::starting, at(1));
  enter(job, Phase::running, at(2));
  enter(job, Phase::running, at(3));
  EXPECT_EQ(condition_of(job.status, "Running").last_transition_time, at(2));
  EXPECT_EQ(condition_of(job.status, "Failed").last_transition_time, at(1));
  enter(job, Phase::restarting, at(4));
  EXPECT_EQ(condition_of(job.status, "Running").last_transition_time, at(4));
  EXPECT_EQ(condition_of(job.status, "Restarting").last_transition_time, at(4));
}

TEST(Conditions, a_spec_that_breaks_a_rule_is_said_beside_the_phase_until_the_job_ends) {
  for (const Row& row : kRows) {
    TrainingJob job;
    job.spec_error = "spec.x: is wrong";
    enter(job, row.phase, at(1));
    auto wanted = row.is_true;
    if (!is_terminal(row.phase)) wanted.push_back("SpecInvalid");
    EXPECT_EQ(types_of(job.status, true), wanted) << to_string(row.phase);
  }
}

TEST(Conditions, a_spec_that_was_mended_is_said_too) {
  TrainingJob job;
  job.spec_error = "spec.x: is wrong";
  enter(job, Phase::running, at(1));
  EXPECT_EQ(condition_of(job.status, "SpecInvalid").reason, reason::kInvalid);
  job.spec_error.reset();
  enter(job, Phase::running, at(2));
  EXPECT_THAT(types_of(job.status, true), ElementsAre("Running"));
  EXPECT_EQ(condition_of(job.status, "SpecInvalid").last_transition_time, at(2));
  EXPECT_EQ(find_invalid_spec(job.status), nullptr);
}

}  // namespace
}  // namespace tj
