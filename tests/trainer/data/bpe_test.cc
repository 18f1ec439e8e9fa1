#include "trainer/data/bpe.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "contract/utf8.h"
#include "tests/temporary_folder.h"
#include "trainer/data/bpe_files.h"
#include "trainer/data/tokenizer_json.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Ids = std::vector<std::uint32_t>;

const fs::path kGpt2 = fs::path(source_dir()) / "tests/trainer/data/gpt2";
const fs::path kChinese = fs::path(source_dir()) / "tests/trainer/data/chinese";

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

/// Rows of what Hugging Face's tokenizers gave.
void expect_cases(BpeEncoder& encoder, const fs::path& file) {
  const auto document = nlohmann::json::parse(content_of(file));
  for (const auto& row : document.at("cases")) {
    const auto text = from_base64(row.at("text_base64").get<std::string>());
    EXPECT_EQ(encode(encoder, text), row.at("ids").get<Ids>()) << text;
    EXPECT_EQ(encode(encoder, text), row.at("ids").get<Ids>()) << "from the cache: " << text;
  }
  EXPECT_GT(document.at("cases").size(), 10U);
}

TEST(Bpe, gives_the_ids_of_gpt2) {
  const auto vocabulary = read_bpe_vocabulary(kGpt2);
  ASSERT_TRUE(vocabulary) << describe(vocabulary.error());
  EXPECT_EQ(vocabulary->size, 50257);
  EXPECT_EQ(vocabulary->document_end, 50256U);
  BpeEncoder encoder(*vocabulary);
  EXPECT_EQ(encode(encoder, "Hello world"), (Ids{15496, 995}));
  EXPECT_EQ(encode(encoder, ""), Ids{});
  expect_cases(encoder, kGpt2 / "cases.json");
}

TEST(Bpe, gives_the_ids_of_hugging_face_with_a_chinese_vocabulary) {
  const auto vocabulary = read_bpe_vocabulary(kChinese / "tokenizer.json");
  ASSERT_TRUE(vocabulary) << describe(vocabulary.error());
  EXPECT_EQ(vocabulary->size, 600);
  EXPECT_EQ(vocabulary->document_end, 0U);
  BpeEncoder encoder(*vocabulary);
  expect_cases(encoder, kChinese / "cases.json");
}

/// Any characters, in runs, so that words of all lengths come about.
std::string random_text(std::mt19937& dice) {
  static constexpr std::uint32_t kFirsts[] = {0x20,   0x30,    0x61,    0x4e00,
                                              0x3000, 0x1f600, 0x20000, 0};
  std::string text;
  while (dice() % 20 > 0) {
    const std::uint32_t first = kFirsts[dice() % std::size(kFirsts)];
    const std::uint32_t spread = first == 0 ? 0x110000 : first == 0x4e00 ? 3000 : 12;
    for (auto left = dice() % (dice() % 10 == 0 ? 300 : 12); left > 0; --left)
      append_utf8(text, first + static_cast<std::uint32_t>(dice() % spread));
  }
  return text;
}

TEST(Bpe, ids_become_the_very_text_again) {
  const auto spelled = spelled_from_tokenizer_json(content_of(kChinese / "tokenizer.json"));
  ASSERT_TRUE(spelled);
  std::map<std::string, char> byte_of;
  const auto spellings = byte_spellings();
  for (std::size_t byte = 0; byte < 256; ++byte) byte_of[spellings[byte]] = static_cast<char>(byte);
  std::map<std::uint32_t, std::string> bytes_of;
  for (const auto& [token, id] : spelled->ids) {
    for (std::size_t at = 0, bytes = 0; at < token.size(); at += bytes) {
      bytes = utf8_sequence_bytes(std::string_view(token).substr(at));
      bytes_of[static_cast<std::uint32_t>(id)] += byte_of.at(token.substr(at, bytes));
    }
  }
  const auto vocabulary = read_bpe_vocabulary(kChinese / "tokenizer.json");
  ASSERT_TRUE(vocabulary);
  BpeEncoder encoder(*vocabulary);
  std::mt19937 dice(20261125);
  for (int round = 0; round < 3000; ++round) {
    const auto text = random_text(dice);
    std::string again;
    for (const auto id : encode(encoder, text)) again += bytes_of.at(id);
    ASSERT_EQ(again, text) << round;
  }
}

/// The two ways to merge a word, of which its length chooses one, give the same.
TEST(Bpe, a_long_word_is_merged_as_its_definition_says) {
  const auto vocabulary = read_bpe_vocabulary(kChinese / "tokenizer.json");
  ASSERT_TRUE(vocabulary);
  BpeEncoder encoder(*vocabulary);
  const std::string text = content_of(kChinese / "text.txt");
  std::string word;  // of letters alone
  for (std::size_t at = 0; at < text.size(); at += utf8_sequence_bytes(text.substr(at, 4))) {
    const auto character = text.substr(at, utf8_sequence_bytes(text.substr(at, 4)));
    if (character >= "\xe4\xb8\x80" && character < "\xea") word += character;
  }
  ASSERT_GT(word.size(), 1000U);
  Ids expected;
  for (const char byte : word)
    expected.push_back(vocabulary->byte_ids[static_cast<std::uint8_t>(byte)]);
  for (;;) {
    std::uint32_t best = MergeTable::kNone;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      const auto rank = vocabulary->merges.rank_of(expected[i], expected[i + 1]);
      if (rank < best) at = i;
      best = std::min(best, rank);
    }
    if (best == MergeTable::kNone) break;
    expected[at] = vocabulary->merges.merged(best);
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  EXPECT_EQ(encode(encoder, word), expected);
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
    const auto again = bpe_vocabulary_from(vocabulary->tokenizer_json);
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->sha256, expected->sha256) << "the file to keep has the same in it";
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
  EXPECT_EQ(error_with("{\"a\": 1, \"b\": 1}", ""),
            "vocab.json: \"a\" and \"b\" have the same id, 1");
  EXPECT_EQ(error_with(vocab, "h e\nh e\n"), "vocab.json: has the merge of \"h\" and \"e\" twice");
}

TEST(Bpe, a_tokenizer_of_another_kind_is_refused) {
  const TemporaryFolder folder;
  const auto error_of = [&](const nlohmann::json& document) {
    const auto file = folder.write("tokenizer.json", document.dump());
    const auto vocabulary = read_bpe_vocabulary(file);
    return vocabulary ? "" : describe(vocabulary.error()).substr(file.string().size() + 2);
  };
  const nlohmann::json words = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  const std::string start = "is not GPT-2's byte-level BPE, nor Qwen2's: ";
  EXPECT_EQ(error_of({{"model", {{"type", "Unigram"}}}}), start + "model.type is not BPE");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}}}, {"normalizer", {{"type", "NFD"}}}}),
            start + "it has a normalizer that is not NFC");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}}}, {"pre_tokenizer", {{"type", "Metaspace"}}}}),
            start + "pre_tokenizer.type is not ByteLevel");
  EXPECT_EQ(
      error_of({{"model", {{"type", "BPE"}, {"ignore_merges", true}}}, {"pre_tokenizer", words}}),
      start + "model.ignore_merges is true");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}, {"dropout", 0.1}}}, {"pre_tokenizer", words}}),
            start + "model.dropout is 0.1");
  EXPECT_EQ(error_of({{"model", {{"type", "BPE"}}},
                      {"pre_tokenizer", words},
                      {"post_processor", {{"type", "RobertaProcessing"}}}}),
            start + "post_processor.type is not ByteLevel: it may add tokens");
  EXPECT_NE(error_of({{"model", 7}}).find("is not as expected"), std::string::npos);
  EXPECT_EQ(error_of(nullptr), "is not a JSON object");
}

TEST(Bpe, the_special_token_that_ends_a_document_is_the_files_own) {
  const auto original = nlohmann::json::parse(content_of(kChinese / "tokenizer.json"));
  const auto with = [&](const nlohmann::json& added) {
    auto document = original;
    document["model"]["vocab"].erase("<|endoftext|>");
    document["added_tokens"] = added;
    return bpe_vocabulary_from(document.dump());
  };
  const auto own = with({{{"id", 700}, {"content", "</s>"}, {"special", true}}});
  ASSERT_TRUE(own) << describe(own.error());
  EXPECT_EQ(own->document_end, 700U);
  EXPECT_EQ(own->size, 701);
  const auto error_with = [&](const nlohmann::json& added) {
    const auto vocabulary = with(added);
    return vocabulary ? "" : describe(vocabulary.error());
  };
  EXPECT_EQ(
      error_with({{{"id", 700}, {"content", "</s>"}}, {{"id", 701}, {"content", "<s>"}}}),
      "has no token \"<|endoftext|>\", and 2 other special tokens: which one ends a document is "
      "not known");
  EXPECT_EQ(
      error_with({{{"id", 700}, {"content", "<s>"}, {"special", false}, {"lstrip", true}}}),
      "is no byte-level BPE that ours equals: of the added token \"<s>\", which is not special, "
      "lstrip is true");
  EXPECT_EQ(error_with({{{"id", 700}, {"content", "!"}}}), "\"!\" has two ids, 1 and 700");
}

TEST(TokenizerJson, is_written_as_hugging_face_writes_it) {
  const auto text = content_of(kChinese / "tokenizer.json");
  const auto spelled = spelled_from_tokenizer_json(text);
  ASSERT_TRUE(spelled) << describe(spelled.error());
  EXPECT_EQ(tokenizer_json_text(*spelled), text);
  SpelledBpe without_merges{.ids = {{"<|endoftext|>", 0}},
                            .merges = {},
                            .document_end = "<|endoftext|>",
                            .specials = {"<|endoftext|>"}};
  const auto again = spelled_from_tokenizer_json(tokenizer_json_text(without_merges));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, without_merges);
}

}  // namespace
}  // namespace tj::trainer
