#include "trainer/comm/accelerator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {
using enum DeviceChoice;

AcceleratorRequest request(DeviceChoice choice, int gpus, int local_rank = 0) {
  return {.choice = choice,
          .visible_gpus = gpus,
          .local_rank = local_rank,
          .place = {.plugin = TJ_FAKE_PLUGINS "/libfake_good.so",
                    .cuda_library = "libc.so.6",
                    .libtorch = "2.11.0"}};
}

TEST(Accelerator, each_process_takes_the_gpu_of_its_local_rank) {
  const auto found = find_accelerator(request(automatic, 4, 3));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu(), 3);
  EXPECT_EQ(found->text, "Fake 3000, NCCL 2.28.9");
  EXPECT_EQ(found->card, "GPU-3");
}

TEST(Accelerator, a_process_that_is_shown_one_gpu_takes_that) {
  const auto found = find_accelerator(request(automatic, 1, 3));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu(), 0);
}

TEST(Accelerator, without_a_gpu_nothing_is_loaded) {
  auto asked = request(automatic, 0);
  asked.place.plugin = "/absent";
  const auto found = find_accelerator(asked);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu(), std::nullopt);
  EXPECT_EQ(found->text, "no GPU is visible");
}

TEST(Accelerator, gpus_of_amd_are_said_and_nothing_is_loaded_for_them) {
  auto asked = request(automatic, 0);
  asked.amd_gpus = 2;
  asked.place.plugin = "/absent";
  const std::string why =
      "no GPU of NVIDIA is visible; there are 2 GPUs of AMD (/dev/kfd), but this build computes on "
      "GPUs by CUDA and NCCL, and has nothing for ROCm";
  const auto found = find_accelerator(asked);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu(), std::nullopt);
  EXPECT_EQ(found->text, why);
  asked.choice = cuda;
  EXPECT_EQ(describe(find_accelerator(asked).error()),
            "--device: is cuda, but " + why + "; --device auto would train on the CPU");
}

TEST(Accelerator, a_gpu_that_can_not_be_used_is_said_and_the_cpu_taken) {
  const auto missing = [] {
    auto asked = request(automatic, 1);
    asked.place.plugin = "/absent/libtrainer_nccl.so";
    return find_accelerator(asked);
  }();
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->gpu(), std::nullopt);
  EXPECT_EQ(missing->text,
            "a GPU is visible, but libtrainer_nccl.so is missing: /absent/libtrainer_nccl.so");
  const auto full = find_accelerator(request(automatic, 2, 1));
  ASSERT_TRUE(full);
  EXPECT_EQ(full->gpu(), std::nullopt);
  EXPECT_EQ(full->text, "2 GPUs are visible, but it can't be used: out of memory");
}

TEST(Accelerator, who_asks_for_cuda_gets_no_cpu_instead) {
  const auto none = find_accelerator(request(cuda, 0));
  ASSERT_FALSE(none);
  EXPECT_EQ(describe(none.error()),
            "--device: is cuda, but no GPU is visible; --device auto would train on the CPU");
  EXPECT_FALSE(find_accelerator(request(cuda, 2, 1)));
  EXPECT_TRUE(find_accelerator(request(cuda, 2, 0)));
}

TEST(Accelerator, who_asks_for_the_cpu_gets_it) {
  const auto found = find_accelerator(request(cpu, 8));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->gpu(), std::nullopt);
  EXPECT_EQ(found->text, "--device cpu");
}

TEST(Accelerator, more_ranks_than_gpus_are_refused_on_each_rank) {
  for (const int local_rank : {0, 2}) {
    auto asked = request(automatic, 2, local_rank);
    asked.local_world_size = 3;
    const auto found = find_accelerator(asked);
    ASSERT_FALSE(found);
    EXPECT_EQ(describe(found.error()),
              "LOCAL_WORLD_SIZE: is 3 where 2 GPUs are visible; NCCL needs a GPU for each rank: at "
              "most 2 ranks (trainer launch --nproc), or --device cpu");
  }
}

}  // namespace
}  // namespace tj::trainer
