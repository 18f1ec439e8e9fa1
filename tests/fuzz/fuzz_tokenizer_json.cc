// tokenizer.json: what it spells, and a vocabulary made of it, which then encodes.
#include "tests/fuzz/fuzzed.h"
#include "trainer/data/bpe_files.h"
#include "trainer/data/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = tj::fuzz::text_of(data, size);
  if (const auto spelled = tj::trainer::spelled_from_tokenizer_json(text)) {
    const auto again = tj::trainer::spelled_from_tokenizer_json(tokenizer_json_text(*spelled));
    TJ_CHECK(again && *again == *spelled, "a tokenizer reads as it was written");
  }
  const auto vocabulary = tj::trainer::bpe_vocabulary_from(text);
  if (!vocabulary) return 0;
  tj::trainer::BpeEncoder encoder(*vocabulary);
  encoder.encode(text.substr(0, 10'000), [&](auto ids) {
    for (const auto id : ids) TJ_CHECK(id < vocabulary->size, "an id is in the vocabulary");
  });
  return 0;
}
