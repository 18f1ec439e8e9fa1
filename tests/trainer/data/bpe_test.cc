#include "trainer/data/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/trainer/temporary_folder.h"
#include "trainer/data/bpe_files.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Ids = std::vector<std::uint32_t>;

const fs::path kGpt2 = fs::path(TJ_SOURCE_DIR) / "tests/trainer/data/gpt2";

std::string content_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Ids encode(BpeEncoder& encoder, std::string_view text) {
  Ids all;
  encoder.encode(text, [&](auto ids) { all.insert(all.end(), ids.begin(), ids.end()); });
  return all;
}

std::string from_base64(const std::string& text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kDigits.find(digit));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

TEST(Bpe, gives_the_ids_of_gpt2) {
  const auto vocabulary = read_bpe_vocabulary(kGpt2);
  ASSERT_TRUE(vocabulary) << describe(vocabulary.error());
  EXPECT_EQ(vocabulary->size, 50257);
  EXPECT_EQ(vocabulary->document_end, 50256U);
  BpeEncoder encoder(*vocabulary);
  EXPECT_EQ(encode(encoder, "Hello world"), (Ids{15496, 995}));
  EXPECT_EQ(encode(encoder, ""), Ids{});
  const auto document = nlohmann::json::parse(content_of(kGpt2 / "cases.json"));
  for (const auto& row : document.at("cases")) {
    const auto text = from_base64(row.at("text_base64").get<std::string>());
    EXPECT_EQ(encode(encoder, text), row.at("ids").get<Ids>()) << text;
    EXPECT_EQ(encode(encoder, text), row.at("ids").get<Ids>()) << "from the cache: " << text;
  }
}

TEST(Bpe, a_word_without_end_takes_no_quadratic_time) {
  const auto vocabulary = read_bpe_vocabulary(kGpt2);
  ASSERT_TRUE(vocabulary);
  BpeEncoder encoder(*vocabulary);
  const auto ids = encode(encoder, std::string(1 << 20, 'x'));
  EXPECT_EQ(ids.size() % 2, 0U);
  EXPECT_TRUE(std::ranges::all_of(ids, [&](auto id) { return id == ids.front(); }));
}

TEST(Bpe, every_form_of_the_files_gives_the_same_vocabulary) {
  const auto vocab = content_of(kGpt2 / "vocab.json");
  const auto merges = content_of(kGpt2 / "merges.txt");
  const TemporaryFolder openai;
  openai.write("encoder.json", vocab);
  openai.write("vocab.bpe", merges);
  nlohmann::json document = {
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
      {"added_tokens", {{{"id", 50256}, {"content", "<|endoftext|>"}}}},
      {"model", {{"type", "BPE"}, {"vocab", nlohmann::json::parse(vocab)}, {"merges", {}}}}};
  std::istringstream lines(merges.substr(merges.find('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    if (document["model"]["merges"].size() % 2 == 0) {
      document["model"]["merges"].push_back(line);
    } else {
      document["model"]["merges"].push_back({line.substr(0, space), line.substr(space + 1)});
    }
  }
  const TemporaryFolder hugging_face;
  const auto file = hugging_face.write("tokenizer.json", document.dump());
  const auto expected = read_bpe_vocabulary(kGpt2);
  ASSERT_TRUE(expected);
  for (const auto& path : {openai.path(), hugging_face.path(), file}) {
    const auto vocabulary = read_bpe_vocabulary(path);
    ASSERT_TRUE(vocabulary) << describe(vocabulary.error());
    EXPECT_EQ(vocabulary->sha256, expected->sha256);
    EXPECT_EQ(vocabulary->size, 50257);
  }
}

TEST(Bpe, what_is_wrong_with_a_vocabulary_is_named) {
  const auto vocab = content_of(kGpt2 / "vocab.json");
  const auto error_with = [&](const std::string& ids, const std::string& merges) {
    const TemporaryFolder folder;
    folder.write("vocab.json", ids);
    folder.write("merges.txt", merges);
    const auto vocabulary = read_bpe_vocabulary(folder.path());
    if (vocabulary) return std::string();
    const std::string text = describe(vocabulary.error());
    return text.substr(text.find(".json:") == std::string::npos ? text.rfind("merges.txt")
                                                                : text.rfind("vocab.json"));
  };
  EXPECT_EQ(error_with(vocab.substr(0, 1000), ""),
            "vocab.json: at byte 1001: is no JSON (cut short?)");
  EXPECT_EQ(error_with("{\"a\": 1}", ""), "vocab.json: has no token \"\xc4\x80\"");
  EXPECT_EQ(error_with("{\"a\": -1}", ""),
            "vocab.json: the id of \"a\" is -1; it must be from 0 to 1048575");
  EXPECT_EQ(error_with(vocab, "#version: 0.2\nH e l\n"),
            "merges.txt: at byte 14: \"H e l\" is not two tokens with a space between");
  EXPECT_EQ(error_with(vocab, "q q\n"), "vocab.json: has no token \"qq\"");
}

TEST(Bpe, a_tokenizer_of_another_kind_is_refused) {
  const TemporaryFolder folder;
  const auto error_of = [&](const nlohmann::json& document) {
    const auto file = folder.write("tokenizer.json", document.dump());
    const auto vocabulary = read_bpe_vocabulary(file);
    return vocabulary ? "" : describe(vocabulary.error()).substr(file.string().size() + 2);
  };
  const nlohmann::json words = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const std::string start = "is not GPT-2's byte-level BPE: ";
  EXPECT_EQ(error_of({{"model", {{"type", "Unigram"}}}}), start + "model.type is not BPE");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}}}, {"normalizer", {{"type", "NFC"}}}}),
            start + "it has a normalizer");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}}}, {"pre_tokenizer", {{"type", "Metaspace"}}}}),
            start + "pre_tokenizer.type is not ByteLevel");
  EXPECT_EQ(
      error_of({{"model", {{"type", "BPE"}, {"ignore_merges", true}}}, {"pre_tokenizer", words}}),
      start + "model.ignore_merges is true");
  EXPECT_NE(error_of({{"model", 7}}).find("is not as expected"), std::string::npos);
}

}  // namespace
}  // namespace tj::trainer
