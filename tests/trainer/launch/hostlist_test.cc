#include "trainer/launch/hostlist.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {
using Names = std::vector<std::string>;

std::string error_of(std::string_view text) {
  const auto hosts = expand_hostlist(text);
  return hosts ? "accepted" : describe(hosts.error());
}

TEST(Hostlist, plain_names_and_ranges_expand_in_order) {
  EXPECT_EQ(*expand_hostlist("node-a"), (Names{"node-a"}));
  EXPECT_EQ(*expand_hostlist("b,a.example.org"), (Names{"b", "a.example.org"}));
  EXPECT_EQ(*expand_hostlist("node[001-003,007]"),
            (Names{"node001", "node002", "node003", "node007"}));
  EXPECT_EQ(*expand_hostlist("gpu[8-11],cpu[1]"),
            (Names{"gpu8", "gpu9", "gpu10", "gpu11", "cpu1"}));
  EXPECT_EQ(*expand_hostlist("node[098-101]-ib"),
            (Names{"node098-ib", "node099-ib", "node100-ib", "node101-ib"}));
  EXPECT_EQ(*expand_hostlist("rack[1-2]n[01-02]"),
            (Names{"rack1n01", "rack1n02", "rack2n01", "rack2n02"}));
}

TEST(Hostlist, what_is_no_list_is_refused_with_its_text) {
  for (const std::string_view bad : {"", ",", "a,", "node[1-3", "node1-3]", "node[3-1]", "node[]",
                                     "node[a-b]", "node[0-99999999]"}) {
    EXPECT_EQ(error_of(bad), "is \"" + std::string(bad) +
                                 "\"; it must be a list of hosts, as in node[001-003,007]");
  }
}

TEST(Hostlist, a_short_text_can_not_ask_for_gigabytes) {
  std::string ranges = "n[1-65536";
  while (ranges.size() < 100'000) ranges += ",1-65536";  // 10^9 numbers
  EXPECT_FALSE(expand_hostlist(ranges + "]"));
  EXPECT_FALSE(expand_hostlist(std::string(100'000, 'n') + "[1-65536]"));
  EXPECT_EQ(expand_hostlist("n[1-65536]")->size(), kHostsMax);
  EXPECT_TRUE(expand_hostlist(std::string(kHostBytesMax, 'n')));
}

TEST(Hostlist, task_counts_repeat) {
  EXPECT_EQ(*expand_task_counts("8"), (std::vector<int>{8}));
  EXPECT_EQ(*expand_task_counts("8(x2),4"), (std::vector<int>{8, 8, 4}));
  for (const std::string_view bad : {"", "8(x0)", "8(y2)", "x", "8,", "8(x99999999)"})
    EXPECT_FALSE(expand_task_counts(bad)) << bad;
}

}  // namespace
}  // namespace tj::trainer
