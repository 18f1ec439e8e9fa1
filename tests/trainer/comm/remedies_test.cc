#include "trainer/network/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {
using testing::HasSubstr;

constexpr const char* kWaited = "rank 1 waited 300 s for rank 0 at node-a:29500: ";

struct Case {
  std::string cause;
  std::string remedy;  // a piece of it
};

TEST(Remedies, each_way_not_to_meet_has_one) {
  for (const auto& [cause, remedy] : {
           Case{"Connection refused", "rank 0 must run on that host"},
           Case{"no answer", "must be open between the nodes"},
           Case{"the name does not resolve (Name or service not known)", "MASTER_ADDR must be"},
           Case{"No route to host", "a firewall rejects"},
           Case{"Network is unreachable", "a network that all nodes share"},
           Case{"no route: Network is down", "a network that all nodes share"},
           Case{"it accepts connections but does not answer", "another MASTER_PORT"},
           Case{"it serves another job or attempt (ours: uid \"\", attempt 1; theirs: uid \"\", "
                "attempt 0)",
                "two MASTER_PORTs"},
           Case{"its store is not one of ours", "another MASTER_PORT is needed"},
       }) {
    const auto told = with_remedy(kWaited + cause);
    EXPECT_TRUE(told.starts_with(kWaited + cause + "; ")) << told;
    EXPECT_THAT(told, HasSubstr(remedy));
    const auto split = split_remedy(told);
    EXPECT_EQ(split.cause, kWaited + cause);
    EXPECT_EQ(told, split.cause + "; " + split.remedy);
  }
}

TEST(Remedies, of_ranks_that_are_missing_is_the_port_of_rank_0) {
  const std::string cause = "rank 0 waited 300 s for rank 1 of world size 2 at port 29500";
  EXPECT_THAT(with_remedy(cause), HasSubstr("reach that port of rank 0's node"));
  // As rank 0 tells it to those who came.
  EXPECT_EQ(split_remedy("rank 0 gave up: " + with_remedy(cause)).cause,
            "rank 0 gave up: " + cause);
}

TEST(Remedies, of_what_nobody_knows_are_none) {
  EXPECT_EQ(with_remedy("Operation not permitted"), "Operation not permitted");
  EXPECT_EQ(split_remedy("Operation not permitted"),
            (CauseAndRemedy{.cause = "Operation not permitted", .remedy = ""}));
}

}  // namespace
}  // namespace tj::trainer
