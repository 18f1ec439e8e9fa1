#include "trainer/data/token_manifest.h"

#include <gtest/gtest.h>

namespace tj::trainer {
namespace {

TokenManifest example() {
  return {
      .made_from = {.tokenizer = "byte",
                    .tokenizer_sha256 = "ab",
                    .vocabulary = 256,
                    .document_end = 0,
                    .format = "jsonl",
                    .field = "text",
                    .val_fraction = "0.1",
                    .part_bytes = 8,
                    .input_files = 2,
                    .input_bytes = 30,
                    .input_sha256 = "cd"},
      .tokenizer_file = {.file = "tokenizer.json", .bytes = 7, .sha256 = "ef"},
      .train = {{.file = "train-000000.tok", .tokens = 5, .documents = 1, .header_crc32 = "0x1"}},
      .val = {}};
}

TEST(TokenManifest, comes_back_as_it_was_written) {
  const auto text = token_manifest_text(example());
  EXPECT_TRUE(is_token_manifest(text));
  const auto manifest = token_manifest_from(text);
  ASSERT_TRUE(manifest) << describe(manifest.error());
  EXPECT_EQ(*manifest, example());
  const auto identity = identity_from(identity_text(example().made_from));
  ASSERT_TRUE(identity);
  EXPECT_EQ(*identity, example().made_from);
}

TEST(TokenManifest, a_tokenizer_is_a_file_of_the_folder_or_none) {
  auto manifest = example();
  manifest.tokenizer_file = {};
  const auto without = token_manifest_from(token_manifest_text(manifest));
  ASSERT_TRUE(without);
  EXPECT_EQ(*without, manifest);
  manifest.tokenizer_file.file = "../secret";
  const auto elsewhere = token_manifest_from(token_manifest_text(manifest));
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->tokenizer_file, TokenizerFile());
}

TEST(TokenManifest, what_is_cut_short_or_of_another_kind_is_refused) {
  const auto text = token_manifest_text(example());
  for (std::size_t size = 0; size + 2 < text.size(); ++size)
    EXPECT_FALSE(token_manifest_from(text.substr(0, size))) << size;
  EXPECT_FALSE(is_token_manifest("{\"kind\": \"web app\"}"));
  EXPECT_FALSE(token_manifest_from("{\"kind\": \"web app\"}"));
  EXPECT_FALSE(token_manifest_from("{\"kind\": 7}"));
}

TEST(TokenManifest, a_number_that_is_not_whole_or_too_large_is_refused) {
  const auto text = token_manifest_text(example());
  const auto with = [&](const std::string& written, const std::string& value) {
    auto changed = text;
    const auto at = changed.find(written);
    return changed.replace(at, written.size(), value);
  };
  EXPECT_FALSE(token_manifest_from(with("\"vocabulary\": 256", "\"vocabulary\": 1e300")));
  EXPECT_FALSE(token_manifest_from(with("\"input_bytes\": 30", "\"input_bytes\": 30.5")));
  EXPECT_FALSE(token_manifest_from(with("\"version\": 1", "\"version\": 4294967297")))
      << "it would be cut to our version";
}

TEST(TokenManifest, the_first_difference_is_named) {
  auto other = example().made_from;
  EXPECT_EQ(difference(other, example().made_from), "");
  other.tokenizer = "gpt2-bpe";
  EXPECT_EQ(difference(other, example().made_from), "tokenizer is \"gpt2-bpe\" and was \"byte\"");
}

}  // namespace
}  // namespace tj::trainer
