#include "trainer/data/tokenizer.h"

#include <algorithm>
#include <array>
#include <span>

#include "trainer/data/bpe_files.h"
#include "trainer/data/token_source.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {

Tokenizer byte_tokenizer() {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(std::string_view("byte"))));
  return {.name = "byte",
          .sha256 = std::move(hash).hex(),
          .vocabulary = 256,
          .document_end = kDocumentEnd,
          .bpe = nullptr};
}

Result<Tokenizer> gpt2_tokenizer(const std::filesystem::path& vocabulary, const std::string& name) {
  auto bpe = read_bpe_vocabulary(vocabulary);
  if (!bpe) return bpe.error();
  const auto shared = std::make_shared<const BpeVocabulary>(std::move(*bpe));
  return Tokenizer{.name = name,
                   .sha256 = shared->sha256,
                   .vocabulary = shared->size,
                   .document_end = shared->document_end,
                   .bpe = shared};
}

Encoder::Encoder(const Tokenizer& tokenizer) {
  if (tokenizer.bpe) bpe_.emplace(*tokenizer.bpe);
}

void Encoder::encode(std::string_view text, const TakeIds& take) {
  if (bpe_) return bpe_->encode(text, take);
  std::array<std::uint32_t, 4096> ids;
  while (!text.empty()) {
    const auto piece = text.substr(0, ids.size());
    std::ranges::transform(piece, ids.begin(),
                           [](char byte) { return static_cast<std::uint8_t>(byte); });
    take(std::span(ids).first(piece.size()));
    text.remove_prefix(piece.size());
  }
}

}  // namespace tj::trainer
