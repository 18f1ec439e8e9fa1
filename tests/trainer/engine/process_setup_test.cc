#include "trainer/train/process_setup.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

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
