// The tokenizer of a trained GPT-2, there and back: what a user names, what stands beside the
// weights, or bytes. Torch-free.
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "contract/result.h"
#include "trainer/data/bpe_decode.h"
#include "trainer/data/tokenizer.h"

namespace tj::trainer {

struct SampleTokens {
  Tokenizer tokenizer;
  TokenBytes bytes;
  /// By id: the tokens that a text can have, and the one that ends it.
  std::vector<bool> may_choose;

  std::vector<std::int64_t> encode(std::string_view text) const;
};

struct SampleTokensRequest {
  std::optional<std::filesystem::path> named;  // by --tokenizer
  std::filesystem::path weights;               // a file, or a folder
  std::int64_t vocabulary = 0;                 // of the model
  std::int64_t tokenizer_vocabulary = 0;       // 0: not known; ids from it on only fill up
};

/// Fails with Code::invalid, or not_found, in the words of the flags.
Result<SampleTokens> open_sample_tokens(const SampleTokensRequest& request);

}  // namespace tj::trainer
