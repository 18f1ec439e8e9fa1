#include "trainer/train/cudnn.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

/// What a GPU would compute by; torch keeps it without one as well.
TEST(Cudnn, adds_in_one_order_or_tries_what_is_fastest_or_does_neither) {
  const auto& context = at::globalContext();
  for (const auto choice : {CudnnChoice::in_order, CudnnChoice::by_trying, CudnnChoice::by_rule}) {
    set_up_cudnn(choice);
    EXPECT_EQ(context.deterministicCuDNN(), choice == CudnnChoice::in_order);
    EXPECT_EQ(context.benchmarkCuDNN(), choice == CudnnChoice::by_trying);
    EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::CONV),
              at::Float32Precision::IEEE);
  }
}

}  // namespace
}  // namespace tj::trainer
