// manifest.json of a folder of tokens, and the note of what an unfinished one is made from.
#include "tests/fuzz/fuzzed.h"
#include "trainer/data/token_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = tj::fuzz::text_of(data, size);
  if (const auto identity = tj::trainer::identity_from(text)) {
    const auto again = tj::trainer::identity_from(identity_text(*identity));
    TJ_CHECK(again && *again == *identity, "an identity reads as it was written");
  }
  const auto manifest = tj::trainer::token_manifest_from(text);
  if (!manifest) return 0;
  const auto again = tj::trainer::token_manifest_from(token_manifest_text(*manifest));
  TJ_CHECK(again && *again == *manifest, "a manifest reads as it was written");
  return 0;
}
