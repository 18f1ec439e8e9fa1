#include "trainer/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {

Manifest example() {
  return {.step = 25,
          .next_sample = 800,
          .seed = 1337,
          .data = {.unit = "tokens", .count = 4096, .digest = ""},
          .loss = 2.25,
          .model = {{"layers", "--layers", 2}, {"heads", "--heads", 4}},
          .files = {{"model.safetensors", {.bytes = 10, .sha256 = "ab"}}}};
}

TEST(Manifest, round_trips) {
  const auto read = manifest_from(manifest_text(example()));
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, example());
}

TEST(Manifest, says_what_a_compressed_reduction_has_left) {
  Manifest manifest = example();
  EXPECT_FALSE(nlohmann::json::parse(manifest_text(manifest)).contains("reduction"));
  manifest.reduction = {.ranks = 4, .factors_rank = 8, .is_exact = true, .scale = 1024};
  const auto read = manifest_from(manifest_text(manifest));
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, manifest);
}

TEST(Manifest, any_cut_is_noticed) {
  const std::string text = manifest_text(example());
  for (std::size_t length = 0; length + 2 < text.size(); ++length) {
    EXPECT_FALSE(manifest_from(text.substr(0, length))) << length;
  }
}

TEST(Manifest, another_version_is_refused_with_both_numbers) {
  auto document = nlohmann::json::parse(manifest_text(example()));
  document["version"] = 9;
  EXPECT_EQ(describe(manifest_from(document.dump()).error()),
            "manifest.json: is of version 9; this trainer reads version 2");
}

TEST(Manifest, a_number_that_is_not_whole_or_too_large_is_refused) {
  for (const char* value : {"-1e300", "1.5", "18446744073709551616", "\"7\"", "null"}) {
    auto document = nlohmann::json::parse(manifest_text(example()));
    document["step"] = nlohmann::json::parse(value);
    const auto manifest = manifest_from(document.dump());
    ASSERT_FALSE(manifest) << value;
    EXPECT_NE(manifest.error().message.find("must be a whole number in its range"),
              std::string::npos)
        << manifest.error().message;
  }
  auto document = nlohmann::json::parse(manifest_text(example()));
  document["version"] = (std::int64_t{1} << 32) + kManifestVersion;
  EXPECT_FALSE(manifest_from(document.dump())) << "it would be cut to our version";
}

TEST(Manifest, data_is_counted_in_its_own_unit_and_may_have_a_digest) {
  Manifest manifest = example();
  manifest.data = {.unit = "frames", .count = 900, .digest = "5d41"};
  const auto text = manifest_text(manifest);
  EXPECT_EQ(nlohmann::json::parse(text).at("data_frames"), 900);
  const auto read = manifest_from(text);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(read->data, manifest.data);
  auto document = nlohmann::json::parse(text);
  document["data_tokens"] = 1;
  EXPECT_FALSE(manifest_from(document.dump())) << "which of the two?";
  document.erase("data_tokens");
  document.erase("data_frames");
  EXPECT_FALSE(manifest_from(document.dump()));
}

}  // namespace
}  // namespace tj::trainer
