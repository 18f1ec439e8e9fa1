// The tokenizers of `trainer prepare`: bytes, or GPT-2's kind of byte-pair encoding with a
// vocabulary from files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/data/bpe.h"

namespace tj::trainer {

struct Tokenizer {
  std::string name;  // "byte", "bpe" or "gpt2-bpe"
  std::string sha256;
  std::int64_t vocabulary = 0;
  std::uint32_t document_end = 0;            // the token after each document
  std::shared_ptr<const BpeVocabulary> bpe;  // null: bytes are tokens
};

Tokenizer byte_tokenizer();
/// GPT-2's kind of encoding with the vocabulary at `vocabulary`, as read_bpe_vocabulary() takes it.
/// `name` is what the token files say.
Result<Tokenizer> gpt2_tokenizer(const std::filesystem::path& vocabulary,
                                 const std::string& name = "gpt2-bpe");

/// One for each thread.
class Encoder {
 public:
  explicit Encoder(const Tokenizer& tokenizer);
  /// Gives the ids of `text` to `take`, a few thousand at a time.
  void encode(std::string_view text, const TakeIds& take);

 private:
  std::optional<BpeEncoder> bpe_;
};

}  // namespace tj::trainer
