#include "operator/api/rank_set.h"

#include <gtest/gtest.h>

#include <set>

namespace tj {
namespace {

TEST(RankSet, is_written_as_ranges_whatever_the_order_of_its_ranks) {
  RankSet set;
  EXPECT_EQ(set.text(), "");
  for (const int rank : {7, 3, 5, 4, 0, 3}) set.insert(rank);
  EXPECT_EQ(set.text(), "0,3-5,7");
  EXPECT_EQ(set.size(), 5);
  set.insert(6);
  set.insert(1);
  EXPECT_EQ(set.text(), "0-1,3-7");
}

TEST(RankSet, every_small_set_is_read_as_it_was_written) {
  for (unsigned bits = 0; bits < 1024; ++bits) {
    RankSet set;
    std::set<int> expected;
    for (int rank = 9; rank >= 0; --rank) {
      if ((bits >> rank) % 2 == 0) continue;
      set.insert(rank);
      expected.insert(rank);
    }
    const RankSet read = RankSet::parse(set.text());
    ASSERT_EQ(read, set) << set.text();
    ASSERT_EQ(read.size(), static_cast<int>(expected.size()));
    for (int rank = 0; rank < 10; ++rank) {
      ASSERT_EQ(read.contains(rank), expected.contains(rank)) << set.text() << " " << rank;
    }
  }
}

TEST(RankSet, is_read_up_to_the_first_thing_that_is_none) {
  const auto read = [](const char* text) { return RankSet::parse(text).text(); };
  EXPECT_EQ(read("0,2-5,x,7"), "0,2-5");
  EXPECT_EQ(read("4,2"), "4");
  EXPECT_EQ(read("5-2"), "");
  EXPECT_EQ(read("-3"), "");
  EXPECT_EQ(read("1,99999999999"), "1");
  EXPECT_EQ(read("0,2147483647"), "0");
  EXPECT_EQ(read("0-2147483647"), "");
  EXPECT_EQ(read("3,9998-9999,10001"), "3,9998-9999");
}

}  // namespace
}  // namespace tj
