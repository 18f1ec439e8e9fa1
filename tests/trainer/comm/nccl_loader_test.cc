// Every way in which the plug-in can be missing or wrong, with plug-ins made for it. libc stands in
// for libtorch_cuda.so, which no machine without a GPU has.
#include "trainer/comm/nccl_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
using testing::HasSubstr;

NcclPlace place_of(const std::string& name) {
  return {.plugin = TJ_FAKE_PLUGINS "/" + name, .cuda_library = "libc.so.6", .libtorch = "2.11.0"};
}

TEST(NcclLoader, one_of_our_version_is_loaded) {
  const auto plugin = load_nccl_plugin(place_of("libfake_good.so"));
  ASSERT_TRUE(plugin) << describe(plugin.error());
  PluginText text, card;
  EXPECT_TRUE((*plugin)->use_device(0, &text, &card));
  EXPECT_STREQ(text.bytes, "Fake 3000, NCCL 2.28.9");
  EXPECT_STREQ(card.bytes, "GPU-0");
  EXPECT_EQ((*plugin)->progress(nullptr).begun, 8);
}

TEST(NcclLoader, a_missing_file_is_named) {
  const auto plugin = load_nccl_plugin(place_of("libabsent.so"));
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, Code::not_found);
  EXPECT_EQ(plugin.error().message,
            "libtrainer_nccl.so is missing: " TJ_FAKE_PLUGINS "/libabsent.so");
}

TEST(NcclLoader, a_missing_libtorch_cuda_is_named_with_what_would_be_right) {
  auto place = place_of("libfake_good.so");
  place.cuda_library = "libtorch_cuda_that_is_not_there.so";
  const auto plugin = load_nccl_plugin(place);
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, Code::not_found);
  EXPECT_THAT(plugin.error().message,
              HasSubstr("libtorch_cuda_that_is_not_there.so can't be loaded"));
  EXPECT_THAT(plugin.error().message,
              HasSubstr("torch/lib of PyTorch 2.11.0 for CUDA must be in LD_LIBRARY_PATH"));
}

TEST(NcclLoader, a_library_that_libtorch_cuda_needs_is_named) {
  const TemporaryFolder folder;
  std::ifstream file(place_of("libfake_good.so").plugin, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto needed = bytes.find("libc.so.6");
  ASSERT_NE(needed, std::string::npos);
  bytes.replace(needed, 4, "nccl");
  auto place = place_of("libfake_good.so");
  place.cuda_library = folder.write("libtorch_cuda.so", bytes);
  const auto plugin = load_nccl_plugin(place);
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().message,
            place.cuda_library +
                " can't be loaded: nccl.so.6, which it needs, is missing; the folders nvidia/*/lib "
                "of PyTorch 2.11.0 for CUDA must be in LD_LIBRARY_PATH, beside torch/lib");
}

TEST(NcclLoader, both_versions_of_another_interface_are_named) {
  const auto plugin = load_nccl_plugin(place_of("libfake_abi.so"));
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, Code::invalid);
  EXPECT_EQ(plugin.error().message, TJ_FAKE_PLUGINS
            "/libfake_abi.so has interface 7, this program has 5; both must come from one build");
}

TEST(NcclLoader, both_versions_of_another_libtorch_are_named) {
  const auto plugin = load_nccl_plugin(place_of("libfake_libtorch.so"));
  ASSERT_FALSE(plugin);
  EXPECT_EQ(
      plugin.error().message, TJ_FAKE_PLUGINS
      "/libfake_libtorch.so was compiled with libtorch 2.10.0, this program with 2.11.0; both "
      "must come from one build");
}

TEST(NcclLoader, a_library_that_is_no_plugin_is_refused) {
  const auto plugin = load_nccl_plugin(place_of("libfake_empty.so"));
  ASSERT_FALSE(plugin);
  EXPECT_THAT(plugin.error().message, HasSubstr("is no plug-in of this program"));
}

TEST(NcclLoader, a_file_that_is_no_library_is_refused_with_the_cause) {
  const TemporaryFolder folder;
  auto place = place_of("");
  place.plugin = folder.write("libtrainer_nccl.so", "not a library");
  const auto plugin = load_nccl_plugin(place);
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, Code::invalid);
  EXPECT_THAT(plugin.error().message, HasSubstr("file too short"));
}

}  // namespace
}  // namespace tj::trainer
