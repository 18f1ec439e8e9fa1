// tokenizer.json, the file of Hugging Face's tokenizers: read where it is GPT-2's kind of encoding
// or Qwen2's, and written as version 0.23 writes it.
#pragma once
#include <string>
#include <string_view>

#include "contract/result.h"
#include "trainer/data/spelled_bpe.h"

namespace tj::trainer {

inline constexpr const char* kTokenizerJsonFile = "tokenizer.json";

/// Fails with Code::invalid; of a tokenizer that would encode otherwise than ours the message says
/// what differs.
Result<SpelledBpe> spelled_from_tokenizer_json(std::string_view text);

/// Needs document_end to be one of the ids.
std::string tokenizer_json_text(const SpelledBpe& spelled);

}  // namespace tj::trainer
