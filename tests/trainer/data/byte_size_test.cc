#include "trainer/values/byte_size.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(ByteSize, has_the_units_that_people_write) {
  EXPECT_EQ(byte_size_from("0"), 0);
  EXPECT_EQ(byte_size_from("4096"), 4096);
  EXPECT_EQ(byte_size_from("512MiB"), 512 << 20);
  EXPECT_EQ(byte_size_from("512Mi"), 512 << 20);
  EXPECT_EQ(byte_size_from("1.5GB"), 1'500'000'000);
  EXPECT_EQ(byte_size_from("2kB"), 2000);
}

TEST(ByteSize, others_are_none) {
  for (const char* text :
       {"", "MiB", "-1", "12 MiB", "1e3", "12mib", "nan", "inf", "1TBB", "10000000TB", "0x10"})
    EXPECT_EQ(byte_size_from(text), std::nullopt) << text;
}

}  // namespace
}  // namespace tj::trainer
