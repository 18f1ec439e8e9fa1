#include "trainer/train/peak_flops.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(PeakFlops, are_those_of_the_card_that_is_named_and_of_none_like_it) {
  const auto peak = [](const char* name) { return peak_tflops_of(name, Precision::bf16); };
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3, NCCL 2.28.9"), 989);
  EXPECT_EQ(peak("NVIDIA H100 PCIe, NCCL 2.28.9"), 756);
  EXPECT_EQ(peak("NVIDIA GH200 480GB, NCCL 2.28.9"), 989);
  EXPECT_EQ(peak("NVIDIA L4, NCCL 2.28.9"), 121);
  EXPECT_EQ(peak("NVIDIA L40S, NCCL 2.28.9"), 362);
  EXPECT_EQ(peak("NVIDIA L40, NCCL 2.28.9"), std::nullopt);
  EXPECT_EQ(peak("NVIDIA A10G, NCCL 2.28.9"), std::nullopt);
}

TEST(PeakFlops, of_float32_and_of_cards_without_bfloat16_are_not_known) {
  EXPECT_EQ(peak_tflops_of("NVIDIA H100, NCCL 2.28.9", Precision::fp32), std::nullopt);
  EXPECT_EQ(peak_tflops_of("Tesla V100-SXM2-16GB, NCCL 2.28.9", Precision::bf16), std::nullopt);
  EXPECT_EQ(peak_tflops_of("Tesla V100-SXM2-16GB, NCCL 2.28.9", Precision::fp16), 125);
}

}  // namespace
}  // namespace tj::trainer
