#include "contract/result.h"

#include <gtest/gtest.h>

namespace tj {
namespace {

TEST(Result, holds_a_value_or_an_error) {
  const Result<int> good = 3;
  const Result<int> bad = Error{Code::not_found, "no such pod", "pods/a", {}};
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, 3);
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(describe(bad.error()), "pods/a: no such pod");
}

TEST(Result, of_nothing_is_good_by_default) {
  const Result<void> good;
  const Result<void> bad = Error{Code::timeout, "no answer within 15 s", {}, {}};
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(describe(bad.error()), "no answer within 15 s");
}

TEST(ResultDeathTest, reading_the_wrong_side_names_the_error) {
  const Result<int> bad = Error{Code::invalid, "is \"two\"", "replicas", {}};
  EXPECT_DEATH(static_cast<void>(bad.value()), "replicas: is \"two\"");
  const Result<int> good = 3;
  EXPECT_DEATH(static_cast<void>(good.error()), "no error to read");
}

}  // namespace
}  // namespace tj
