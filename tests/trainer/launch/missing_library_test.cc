#include "trainer/process/missing_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TEST(MissingLibrary, is_the_one_that_the_loader_names) {
  EXPECT_EQ(
      missing_library("libnccl.so.2: cannot open shared object file: No such file or directory"),
      "libnccl.so.2");
  EXPECT_EQ(missing_library("/a/b.so: file too short"), std::nullopt);
  EXPECT_EQ(missing_library(""), std::nullopt);
}

TEST(MissingLibrary, is_found_in_what_this_machines_loader_says) {
  ASSERT_EQ(::dlopen("libnot-there.so.7", RTLD_NOW), nullptr);
  EXPECT_EQ(missing_library(::dlerror()), "libnot-there.so.7");
}

TEST(MissingLibrary, has_the_package_that_debians_rule_gives_it) {
  EXPECT_EQ(debian_package_of("libavcodec.so.59"), "libavcodec59");
  EXPECT_EQ(debian_package_of("libpng16.so.16"), "libpng16-16");
  EXPECT_EQ(debian_package_of("libpcre2-8.so.0"), "libpcre2-8-0");
  EXPECT_EQ(debian_package_of("libtorch.so"), "");
  EXPECT_EQ(debian_package_of(".so.1"), "");
}

}  // namespace
}  // namespace tj::trainer
