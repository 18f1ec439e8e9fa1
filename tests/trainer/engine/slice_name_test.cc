#include "trainer/checkpoint/slice_name.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(SliceName, says_which_elements_of_which_tensor) {
  const SliceName slice{.tensor = "exp_avg.h.0.w", .range = {.begin = 128, .end = 256}};
  EXPECT_EQ(slice_name(slice.tensor, slice.range), "exp_avg.h.0.w[128:256]");
  EXPECT_EQ(parse_slice_name("exp_avg.h.0.w[128:256]"), slice);
}

TEST(SliceName, any_other_name_is_that_of_a_whole_tensor) {
  for (const char* const name :
       {"w", "", "]", "[]", "w[1]", "w[:]", "w[1:]", "w[:2]", "w[2:1]", "w[1:1]", "w[-1:2]",
        "w[a:2]", "w[1:2", "w[1:2] ", "w:1[2]", "w[+1:2]", "w[0:9223372036854775808]"})
    EXPECT_EQ(parse_slice_name(name), std::nullopt) << name;
}

}  // namespace
}  // namespace tj::trainer
