#include "operator/loop/creation_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj {
namespace {
using testing::ElementsAre;
using testing::IsEmpty;

struct Gate {
  SteadyTime now{std::chrono::hours{1}};
  std::vector<std::string> invited;
  CreationGate gate{8,
                    [this](const ObjectKey& job) { invited.push_back(job.ns + "/" + job.name); }};

  bool enter(const std::string& name, int workers, const std::string& ns = "a") {
    return gate.enter({ns, name}, workers, now);
  }
  void created(const std::string& name, int count) {
    for (int i = 0; i < count; ++i) gate.created_one({"a", name});
  }
  void leave(const std::string& name) { gate.leave({"a", name}); }
};

TEST(CreationGate, lets_gangs_in_while_few_workers_are_to_be_created) {
  Gate gate;
  EXPECT_TRUE(gate.enter("small", 4));
  EXPECT_TRUE(gate.enter("large", 100)) << "however large it is";
  EXPECT_FALSE(gate.enter("next", 1));
  gate.created("large", 95);
  EXPECT_THAT(gate.invited, IsEmpty()) << "4 and 5 are left";
  gate.created("large", 2);
  EXPECT_THAT(gate.invited, ElementsAre("a/next"));
  EXPECT_TRUE(gate.enter("next", 1));
}

TEST(CreationGate, invites_one_after_another_in_their_order) {
  Gate gate;
  EXPECT_TRUE(gate.enter("first", 8));
  for (const char* name : {"second", "third", "second"}) EXPECT_FALSE(gate.enter(name, 8));
  gate.leave("first");
  EXPECT_THAT(gate.invited, ElementsAre("a/second"));
  EXPECT_FALSE(gate.enter("third", 8)) << "it is not its turn";
  EXPECT_FALSE(gate.enter("fourth", 8));
  EXPECT_TRUE(gate.enter("second", 8));
  gate.leave("second");
  EXPECT_THAT(gate.invited, ElementsAre("a/second", "a/third"));
}

TEST(CreationGate, goes_on_without_a_job_that_has_changed_its_mind) {
  Gate gate;
  EXPECT_TRUE(gate.enter("first", 8));
  for (const char* name : {"second", "third", "fourth"}) EXPECT_FALSE(gate.enter(name, 8));
  gate.leave("third");
  gate.leave("first");
  gate.leave("second");  // invited, and deleted meanwhile
  EXPECT_THAT(gate.invited, ElementsAre("a/second", "a/fourth"));
  EXPECT_TRUE(gate.gate.creating_since()) << "it is about to";
  gate.leave("fourth");
  EXPECT_FALSE(gate.gate.creating_since());
}

TEST(CreationGate, says_since_when_somebody_has_been_in) {
  Gate gate;
  const SteadyTime began = gate.now;
  EXPECT_TRUE(gate.enter("first", 8));
  gate.now += std::chrono::seconds{5};
  EXPECT_TRUE(gate.enter("elsewhere", 8, "b"));
  gate.leave("first");
  EXPECT_EQ(gate.gate.creating_since(), began) << "there was no pause";
  gate.gate.leave({"b", "elsewhere"});
  EXPECT_TRUE(gate.enter("first", 8));
  EXPECT_EQ(gate.gate.creating_since(), gate.now);
}

TEST(CreationGate, takes_no_notice_of_an_answer_that_comes_after_its_job_has_left) {
  Gate gate;
  EXPECT_TRUE(gate.enter("first", 8));
  gate.leave("first");
  gate.created("first", 9);
  EXPECT_TRUE(gate.enter("second", 8));
  gate.created("first", 1);
  EXPECT_FALSE(gate.enter("third", 1));
}

TEST(CreationGate, holds_up_nobody_in_another_namespace) {
  Gate gate;
  EXPECT_TRUE(gate.enter("first", 100));
  EXPECT_FALSE(gate.enter("second", 8));
  EXPECT_TRUE(gate.enter("second", 8, "b"));
}

}  // namespace
}  // namespace tj
