// What a rank without room is told: how much it needs, what there is, and which flags take less.
#include "trainer/predict/remedies.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

const std::vector<Remedy> kRemedies{
    {.flag = "--accumulation 16", .note = "8 samples in a pass become 4", .bytes = 38e9},
    {.flag = "--recompute", .bytes = 52e9},
    {.flag = "--max-history-images 4", .bytes = 41.2e9},
    {.flag = "--vggt-shard", .bytes = 60.9e9}};

struct Case {
  const char* name;
  MemoryShortage shortage;
  const char* told;
};

TEST(Remedies, are_told_with_what_each_leaves_to_need) {
  const RankRoom room{.bytes = 48e9, .origin = "of one L40S"};
  const RankRoom small{.bytes = 24e9, .origin = "of one L4"};
  const Case cases[] = {
      {"one is enough",
       {.bytes = 61e9, .room = room, .remedies = kRemedies},
       "needs about 61 GB, and has 48 GB of one L40S; with --accumulation 16 (8 samples in a pass "
       "become 4) 38 GB, with --recompute 52 GB, with --max-history-images 4 41 GB"},
      {"none is enough",
       {.bytes = 61e9, .room = small, .remedies = kRemedies},
       "needs about 61 GB, and has 24 GB of one L4; with --accumulation 16 (8 samples in a pass "
       "become 4) 38 GB, with --recompute 52 GB, with --max-history-images 4 41 GB; none of them "
       "is enough by itself"},
      {"but together",
       {.bytes = 61e9,
        .room = small,
        .remedies = {{.flag = "--recompute", .bytes = 52e9}},
        .together = "--zero 3 and --recompute"},
       "needs about 61 GB, and has 24 GB of one L4; with --recompute 52 GB; none of them is enough "
       "by itself, --zero 3 and --recompute is"},
      {"of what there is nothing is known",
       {.bytes = 61e9, .remedies = {{.flag = "--recompute", .bytes = 52e9}}},
       "needs about 61 GB; with --recompute 52 GB"},
      {"it should have fitted",
       {.bytes = 40e9, .room = room, .remedies = {{.flag = "--recompute", .bytes = 20e9}}},
       "needs about 40 GB by forecast, and there are 48 GB of one L40S: something else may hold a "
       "part of them; with --recompute 20 GB"},
      {"nothing takes less",
       {.bytes = 61e9, .room = room, .remedies = {{.flag = "--recompute", .bytes = 61e9}}},
       "needs about 61 GB, and has 48 GB of one L40S; no flag is known that takes less"},
  };
  for (const auto& each : cases) EXPECT_EQ(describe(each.shortage), each.told) << each.name;
}

TEST(Remedies, a_gpu_tells_how_much_it_has) {
  EXPECT_DOUBLE_EQ(*told_capacity("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
                                  "total capacity of 47.50 GiB of which 1.20 GiB is free."),
                   47.5 * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(*told_capacity("total capacity of 512.00 MiB of which"), 512.0 * 1024 * 1024);
  for (const char* const told : {"", "can't allocate memory", "total capacity of ",
                                 "total capacity of many GiB", "total capacity of 3.00 parsec"})
    EXPECT_FALSE(told_capacity(told)) << told;
}

}  // namespace
}  // namespace tj::trainer
