#include "trainer/checkpoint/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {

Manifest example() {
  return {.step = 25,
          .next_sample = 800,
          .seed = 1337,
          .data_tokens = 4096,
          .loss = 2.25,
          .model = {.layers = 2},
          .files = {{"model.safetensors", {.bytes = 10, .sha256 = "ab"}}}};
}

TEST(Manifest, round_trips) {
  const auto read = manifest_from(manifest_text(example()));
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(*read, example());
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

TEST(Manifest, the_config_is_one_of_a_gpt2) {
  const auto config = nlohmann::json::parse(hugging_face_config({.layers = 3}));
  EXPECT_EQ(config.at("model_type"), "gpt2");
  EXPECT_EQ(config.at("activation_function"), "gelu_new");
  EXPECT_EQ(config.at("n_layer"), 3);
}

}  // namespace
}  // namespace tj::trainer
