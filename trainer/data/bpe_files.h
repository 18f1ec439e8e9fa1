// Reads a GPT-2 vocabulary from the files in use: tokenizer.json (Hugging Face), or vocab.json and
// merges.txt (encoder.json and vocab.bpe, as OpenAI named them).
#pragma once
#include <filesystem>
#include <string>

#include "contract/result.h"
#include "trainer/data/bpe.h"

namespace tj::trainer {

/// `path` is a tokenizer.json, or a folder with one or with the other two. Fails with not_found or
/// invalid; a tokenizer.json that is no byte-level BPE as GPT-2's is refused with what differs.
Result<BpeVocabulary> read_bpe_vocabulary(const std::filesystem::path& path);

/// The text of a tokenizer.json. Fails with invalid; the error has no subject.
Result<BpeVocabulary> bpe_vocabulary_from(std::string tokenizer_json);

}  // namespace tj::trainer
