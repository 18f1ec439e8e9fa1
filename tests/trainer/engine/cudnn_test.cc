#include "trainer/train/cudnn.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

/// What a GPU would compute by; torch keeps it without one as well.
TEST(Cudnn, is_either_repeatable_or_tries_what_is_fastest) {
  const auto& context = at::globalContext();
  for (const bool is_repeatable : {true, false}) {
    set_up_cudnn(is_repeatable);
    EXPECT_EQ(context.deterministicCuDNN(), is_repeatable);
    EXPECT_EQ(context.benchmarkCuDNN(), !is_repeatable);
    EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV),
              at::Float32Precision::IEEE);
  }
}

}  // namespace
}  // namespace tj::trainer
