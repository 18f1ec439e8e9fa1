// manifest.json of a checkpoint.
#include "tests/fuzz/fuzzed.h"
#include "trainer/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = tj::trainer::manifest_from(tj::fuzz::text_of(data, size));
  if (!manifest) return 0;
  const auto again = tj::trainer::manifest_from(manifest_text(*manifest));
  TJ_CHECK(again && *again == *manifest, "a manifest reads as it was written");
  return 0;
}
