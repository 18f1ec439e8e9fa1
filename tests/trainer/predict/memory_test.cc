// Memory by parts: the table of ZeRO, and what fits.
#include "trainer/predict/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/predict/planned.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kElements = 1'000'000;

/// Bytes of one parameter in weights, gradients, moments and averages.
double state_of(MemoryInputs inputs) {
  double bytes = 0;
  inputs.trained_elements = kElements;
  for (const auto& part : memory_of(inputs).parts)
    for (const char* const name : {"weights", "gradients", "moments", "averages"})
      if (part.name == name) bytes += part.bytes;
  return bytes / kElements;
}

TEST(Memory, is_that_of_the_table_of_zero) {
  for (const int n : {2, 4, 16}) {
    const double each = 1.0 / n;
    const double fp32[] = {16, 8 + 8 * each, 4 + 12 * each, 16 * each};
    const double bf16[] = {16, 4 + 12 * each, 2 + 14 * each, 16 * each};
    for (int stage = 0; stage <= 3; ++stage) {
      EXPECT_NEAR(state_of({.ranks = n, .zero_stage = stage}), fp32[stage], 1e-9) << n << stage;
      EXPECT_NEAR(state_of({.ranks = n, .zero_stage = stage, .is_half = true}), bf16[stage], 1e-9)
          << n << stage;
    }
    EXPECT_NEAR(state_of({.ranks = n, .zero_stage = 2, .is_half = true, .sums_passes = true}),
                bf16[2] + 2 * each, 1e-9);
    EXPECT_NEAR(state_of({.ranks = n, .zero_stage = 3, .has_averages = true}), 20 * each, 1e-9);
  }
}

TEST(Memory, of_what_is_gathered_beyond_two_blocks) {
  for (int stage = 0; stage <= 3; ++stage) {
    MemoryInputs inputs{.trained_elements = 1'000'000, .ranks = 4, .zero_stage = stage};
    const double before = memory_of(inputs).bytes();
    inputs.gathered_elements = 1000;
    EXPECT_EQ(memory_of(inputs).bytes() - before, stage == 3 ? 4000 : 0) << stage;
  }
}

TEST(Memory, groups_share_out_among_themselves) {
  for (int stage = 0; stage <= 3; ++stage) {
    const MemoryInputs alone{.ranks = 4, .zero_stage = stage};
    EXPECT_EQ(state_of({.ranks = 16, .zero_stage = stage, .zero_group = 4}), state_of(alone));
  }
}

TEST(Memory, of_a_codec_that_keeps_what_it_did_not_send) {
  const MemoryInputs inputs{.trained_elements = kElements, .ranks = 2};
  const auto extra = [&](Codec codec) {
    auto changed = inputs;
    changed.reduction.codec = codec;
    changed.gradients = {{.shape = {1000, 1000}}};
    auto plain = changed;
    plain.reduction.codec = Codec::fp32;
    return memory_of(changed).bytes() - memory_of(plain).bytes();
  };
  EXPECT_EQ(extra(Codec::bf16), 0);
  EXPECT_EQ(extra(Codec::int8), 4.0 * kElements);
  EXPECT_EQ(extra(Codec::powersgd), 4.0 * kElements + 4 * kReduceRankDefault * 2000);
}

TEST(Memory, what_a_workload_holds_by_itself_is_in_it) {
  MemoryInputs inputs{.trained_elements = kElements, .activation_bytes = 5e6};
  const double without = memory_of(inputs).bytes();
  inputs.held = {{.name = "frozen VGGT", .bytes = 2e6}, {.name = "frames kept", .bytes = 0}};
  const auto need = memory_of(inputs);
  EXPECT_EQ(need.bytes(), without + 2e6);
  EXPECT_TRUE(std::ranges::any_of(
      need.parts, [](const MemoryPart& part) { return part.name == "frozen VGGT"; }));
  EXPECT_FALSE(std::ranges::any_of(
      need.parts, [](const MemoryPart& part) { return part.name == "frames kept"; }));
}

TEST(Memory, copies_for_products_are_there_without_zero_alone) {
  MemoryInputs inputs{.trained_elements = kElements, .ranks = 2, .activation_bytes = 5e6};
  for (int stage = 0; stage <= 3; ++stage) {
    inputs.zero_stage = stage;
    inputs.cast_bytes = 0;
    const double without = memory_of(inputs).bytes();
    inputs.cast_bytes = 2e6;
    EXPECT_EQ(memory_of(inputs).bytes() - without, stage == 0 ? 2e6 : 0) << stage;
  }
}

MemoryInputs of_a_large_model() {
  return {.trained_elements = 1'000'000'000,
          .block_elements = 10'000'000,
          .ranks = 8,
          .activation_bytes = 32e9,
          .saves_here = false};
}

TEST(Memory, the_smallest_change_is_a_smaller_pass) {
  const MemoryRoom room{.bytes = 24e9, .micro_batch = 8, .accumulation = 2};
  const auto change = smallest_change(of_a_large_model(), room);
  ASSERT_TRUE(change);
  EXPECT_EQ(change->text, "--accumulation 8 (2 in a pass)");  // 16 GB and a quarter of 32
}

TEST(Memory, then_recompute_then_a_stage_of_zero) {
  MemoryRoom room{.bytes = 20e9, .micro_batch = 1, .accumulation = 2};
  const auto sharded = smallest_change(of_a_large_model(), room);
  EXPECT_FALSE(sharded);  // activations alone are 32 GB
  room.can_recompute = true;
  room.recompute_share = 0.1;
  EXPECT_EQ(smallest_change(of_a_large_model(), room)->text, "--recompute");
  room.bytes = 13e9;
  EXPECT_EQ(smallest_change(of_a_large_model(), room)->text, "--zero 1 and --recompute");
}

TEST(Memory, a_recomputed_pass_may_need_no_room_for_copies) {
  auto inputs = of_a_large_model();  // 16 GB and 32
  inputs.cast_bytes = 2e9;
  MemoryRoom room{.bytes = 20e9, .can_recompute = true, .recompute_share = 0.1};
  EXPECT_EQ(smallest_change(inputs, room)->text, "--recompute");
  room.recompute_cast_bytes = 2e9;
  EXPECT_EQ(smallest_change(inputs, room)->text, "--zero 1 and --recompute");
}

TEST(Memory, what_no_change_makes_fit) {
  EXPECT_FALSE(smallest_change(of_a_large_model(), {.bytes = 1e9, .micro_batch = 8}));
}

TEST(Memory, gpus_are_known_by_a_part_of_their_names) {
  const auto named = [](const char* name) {
    const auto kind = gpu_kind_named(name);
    return kind ? std::string(kind->name) : "none";
  };
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(named("NVIDIA A100-SXM4-40GB"), "A100-SXM4-40GB");
  EXPECT_EQ(named("a100"), "A100");
  EXPECT_EQ(named("NVIDIA L40S"), "L40S");
  EXPECT_EQ(named("l4"), "L4");
  EXPECT_EQ(named("4090"), "RTX 4090");
  EXPECT_EQ(named("GTX 970"), "none");
  EXPECT_EQ(named(""), "none");
}

TEST(Memory, so_many_gpus_hold_it) {
  auto inputs = of_a_large_model();
  inputs.activation_bytes = 4e9;
  const auto needed = [&](double gigabytes) {
    const auto count = gpus_needed(inputs, gigabytes * 1e9);
    return count ? std::pair(count->ranks, count->zero_stage) : std::pair(0, 0);
  };
  EXPECT_EQ(needed(80), (std::pair(1, 0)));
  EXPECT_EQ(needed(20), (std::pair(2, 1)));
  EXPECT_EQ(needed(12), (std::pair(4, 2)));
  EXPECT_EQ(needed(3), (std::pair(0, 0)));
}

}  // namespace
}  // namespace tj::trainer
