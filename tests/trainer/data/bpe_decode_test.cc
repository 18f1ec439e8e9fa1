#include "trainer/data/bpe_decode.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "trainer/data/bpe.h"
#include "trainer/data/bpe_files.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

const fs::path kGpt2 = fs::path(source_dir()) / "tests/trainer/data/gpt2";

TEST(TokenBytes, text_comes_back_from_its_ids) {
  const auto vocabulary = read_bpe_vocabulary(kGpt2);
  const auto bytes = TokenBytes::read(kGpt2);
  ASSERT_TRUE(vocabulary && bytes);
  EXPECT_EQ(bytes->size(), vocabulary->size);
  BpeEncoder encoder(*vocabulary);
  for (const std::string text :
       {"Hello world", "  spaces \t\n and \xc2\xa0", "na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87",
        "\xf0\x9f\x98\x80 emoji", "<|endoftext|> is text"}) {
    std::string back;
    encoder.encode(text, [&](auto ids) {
      for (const auto id : ids) back += bytes->find(id).value_or("?");
    });
    EXPECT_EQ(back, text);
  }
}

TEST(TokenBytes, of_bytes_are_themselves) {
  const auto bytes = TokenBytes::of_bytes();
  EXPECT_EQ(bytes.size(), 256);
  for (std::int64_t byte = 0; byte < 256; ++byte)
    EXPECT_EQ(bytes.find(byte), std::string(1, static_cast<char>(byte)));
  EXPECT_EQ(bytes.find(256), std::nullopt);
  EXPECT_EQ(bytes.find(-1), std::nullopt);
}

nlohmann::json small_tokenizer() {
  return {
      {"added_tokens",
       {{{"id", 5}, {"content", "<|endoftext|>"}},
        {{"id", 7}, {"content", "caf\xc3\xa9 \xe4\xb8\xad"}}}},
      {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"\xc4\xa0", 1}, {"\xe4\xb8\xad", 3}}}}}};
}

TEST(TokenBytes, ids_without_text_are_known_as_such) {
  const TemporaryFolder folder;
  const auto file = folder.write("tokenizer.json", small_tokenizer().dump());
  for (const auto& path : {file, folder.path()}) {
    const auto bytes = TokenBytes::read(path);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    EXPECT_EQ(bytes->size(), 8);
    EXPECT_EQ(bytes->find(0), "a");
    EXPECT_EQ(bytes->find(1), " ");
    EXPECT_EQ(bytes->find(2), std::nullopt) << "a hole";
    EXPECT_EQ(bytes->find(3), std::nullopt) << "not spelled as bytes are";
    EXPECT_EQ(bytes->find(5), "<|endoftext|>");
    EXPECT_EQ(bytes->find(7), "caf\xc3\xa9 \xe4\xb8\xad") << "an added token is spelled as it is";
  }
}

TEST(TokenBytes, files_that_can_not_be_are_named) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "tokenizer.json";
  const auto error_of = [&](const std::string& text) {
    folder.write("tokenizer.json", text);
    const auto bytes = TokenBytes::read(file);
    return bytes ? std::string() : describe(bytes.error());
  };
  const auto with = [](const char* pointer, const nlohmann::json& value) {
    auto document = small_tokenizer();
    document[nlohmann::json::json_pointer(pointer)] = value;
    return document.dump();
  };
  const std::string name = file.string() + ": ";
  EXPECT_EQ(error_of("{"), name + "is not a JSON object (cut short?)");
  EXPECT_EQ(error_of("[1]"), name + "is not a JSON object (cut short?)");
  EXPECT_EQ(error_of(with("/model/vocab/a", 1 << 20)),
            name + "the id of \"a\" is 1048576; it must be from 0 to 1048575");
  EXPECT_EQ(error_of(with("/added_tokens/0/id", -1)),
            name + "the id of \"<|endoftext|>\" is -1; it must be from 0 to 1048575");
  for (const auto& text :
       {with("/model/vocab/a", "x"), with("/model/vocab/a", 1.5), with("/model", 3),
        with("/added_tokens", 3), with("/added_tokens/0", 3), with("/model/vocab", "x")})
    EXPECT_TRUE(error_of(text).starts_with(name)) << error_of(text) << "\n" << text;
  const TemporaryFolder empty;
  EXPECT_EQ(describe(TokenBytes::read(empty.path()).error()),
            empty.path().string() +
                ": holds neither tokenizer.json, nor vocab.json and merges.txt, nor "
                "encoder.json and vocab.bpe");
  EXPECT_FALSE(TokenBytes::read(empty.path() / "gone"));
}

TEST(TokenBytes, the_file_beside_the_data_is_found) {
  const TemporaryFolder folder;
  EXPECT_EQ(tokenizer_file_beside(folder.path()), std::nullopt);
  const auto data = folder.write("train-00000.tok", "");
  const auto file = folder.write("tokenizer.json", "{}");
  EXPECT_EQ(tokenizer_file_beside(folder.path()), file);
  EXPECT_EQ(tokenizer_file_beside(data), file);
}

}  // namespace
}  // namespace tj::trainer
