#include "trainer/launch/thread_waiting.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

TEST(ThreadWaiting, cores_are_wanted_where_others_and_our_threads_are_more_than_there_are) {
  EXPECT_FALSE(are_cores_wanted({.runnable = 1, .share = 2, .cores = 2}));
  EXPECT_TRUE(are_cores_wanted({.runnable = 2, .share = 2, .cores = 2}));
  // Two ranks of a thread each.
  EXPECT_FALSE(are_cores_wanted({.runnable = 2, .share = 1, .cores = 2}));
  EXPECT_FALSE(are_cores_wanted({.runnable = 40, .share = 8, .cores = 64}));
  EXPECT_TRUE(are_cores_wanted({.runnable = 60, .share = 8, .cores = 64}));
}

TEST(ThreadWaiting, who_is_runnable_stands_in_loadavg) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "loadavg") << "0.20 0.18 0.12 5/80 11206\n";
  EXPECT_EQ(core_demand(folder.path()).runnable, 5);
  EXPECT_EQ(core_demand(folder.path() / "gone").runnable, 1);
  std::ofstream(folder.path() / "loadavg") << "nothing to read";
  EXPECT_EQ(core_demand(folder.path()).runnable, 1);
}

}  // namespace
}  // namespace tj::trainer
