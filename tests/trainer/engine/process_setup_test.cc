#include "trainer/train/process_setup.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "trainer/comm/nccl_words.h"

namespace tj::trainer {
namespace {

TEST(FailureOf, tells_memory_from_the_rest) {
  EXPECT_EQ(failure_of(std::bad_alloc()).reason, "OutOfMemory");
  const auto torch = failure_of(std::runtime_error("CUDA out of memory. Tried 2 GiB\nstack"));
  EXPECT_EQ(torch.reason, "OutOfMemory");
  EXPECT_EQ(torch.message, "out of memory: CUDA out of memory. Tried 2 GiB");
  const auto other = failure_of(std::runtime_error("bad shape\nof memory"));
  EXPECT_NE(other.reason, "OutOfMemory");
  EXPECT_EQ(other.message, "bad shape");
}

TEST(FailureOf, says_why_a_thread_may_not_start) {
  const std::system_error refused(EAGAIN, std::generic_category());
  const auto unlimited = failure_of(refused);
  EXPECT_EQ(unlimited.message,
            "a thread can't be started: Resource temporarily unavailable; its stack has no room "
            "(ulimit -v), or no more may run (ulimit -u, pids.max)");
  EXPECT_NE(unlimited.reason, "OutOfMemory");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  ASSERT_EQ(before.rlim_cur, RLIM_INFINITY);
  const rlimit large{.rlim_cur = rlim_t{1} << 46, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &large), 0);
  const auto limited = failure_of(refused);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(limited.reason, "OutOfMemory");
  EXPECT_EQ(limited.message, "out of memory: " + unlimited.message);
}

TEST(OutOfMemory, is_known_by_the_last_warning_of_nccl) {
  const std::runtime_error thrown(
      "NCCL error in: x.cpp:1, unhandled cuda error, NCCL version 2.28.9\n"
      "Last error:\nCuda failure 2 'out of memory'\n");
  ASSERT_TRUE(is_of_nccl(thrown.what()));
  EXPECT_TRUE(is_out_of_memory(thrown, describe(nccl_words(thrown.what()))));
  EXPECT_FALSE(is_out_of_memory(thrown, cause_of(thrown)));
}

}  // namespace
}  // namespace tj::trainer
