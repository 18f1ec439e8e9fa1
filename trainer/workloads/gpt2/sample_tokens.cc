#include "trainer/workloads/gpt2/sample_tokens.h"

#include <algorithm>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

Error wrong(const std::string& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject};
}

std::optional<fs::path> named_or_beside(const SampleTokensRequest& request) {
  if (request.named) return request.named;
  if (const auto file = tokenizer_file_beside(request.weights)) return file;
  // As older folders of transformers have it.
  std::error_code unreadable;
  const bool has_two_files = fs::exists(request.weights / "vocab.json", unreadable) &&
                             fs::exists(request.weights / "merges.txt", unreadable);
  return has_two_files ? std::optional(request.weights) : std::nullopt;
}

Result<SampleTokens> of_file(const fs::path& file) {
  auto tokenizer = gpt2_tokenizer(file);
  if (!tokenizer) return tokenizer.error();
  auto bytes = TokenBytes::read(file);
  if (!bytes) return bytes.error();
  return SampleTokens{
      .tokenizer = std::move(*tokenizer), .bytes = std::move(*bytes), .may_choose = {}};
}

Result<SampleTokens> open(const SampleTokensRequest& request) {
  if (const auto file = named_or_beside(request)) {
    auto tokens = of_file(*file);
    if (tokens || !request.named) return tokens;
    auto error = tokens.error();
    error.subject = "--tokenizer " + error.subject;
    return error;
  }
  const auto known =
      request.tokenizer_vocabulary > 0 ? request.tokenizer_vocabulary : request.vocabulary;
  auto bytes = byte_tokenizer();
  if (known == bytes.vocabulary)
    return SampleTokens{
        .tokenizer = std::move(bytes), .bytes = TokenBytes::of_bytes(), .may_choose = {}};
  return wrong("--tokenizer", "is needed: no tokenizer.json beside " + request.weights.string() +
                                  " says what its " + std::to_string(known) + " tokens are");
}

}  // namespace

std::vector<std::int64_t> SampleTokens::encode(std::string_view text) const {
  std::vector<std::int64_t> ids;
  Encoder(tokenizer).encode(text, [&](std::span<const std::uint32_t> some) {
    ids.insert(ids.end(), some.begin(), some.end());
  });
  return ids;
}

Result<SampleTokens> open_sample_tokens(const SampleTokensRequest& request) {
  auto tokens = open(request);
  if (!tokens) return tokens.error();
  if (tokens->tokenizer.vocabulary > request.vocabulary)
    return wrong(request.named ? "--tokenizer " + request.named->string() : "tokenizer.json",
                 "has " + std::to_string(tokens->tokenizer.vocabulary) + " tokens; the model of " +
                     request.weights.string() + " has " + std::to_string(request.vocabulary));
  const auto end = request.tokenizer_vocabulary > 0
                       ? std::min(request.tokenizer_vocabulary, request.vocabulary)
                       : request.vocabulary;
  tokens->may_choose.resize(static_cast<std::size_t>(end));
  for (std::int64_t id = 0; id < end; ++id)
    tokens->may_choose[static_cast<std::size_t>(id)] = tokens->bytes.find(id).has_value();
  const auto document_end = static_cast<std::size_t>(tokens->tokenizer.document_end);
  if (document_end < tokens->may_choose.size()) tokens->may_choose[document_end] = true;
  if (std::ranges::find(tokens->may_choose, true) == tokens->may_choose.end())
    return wrong("--tokenizer", "has text for none of the model's tokens");
  return tokens;
}

}  // namespace tj::trainer
