// The progress document: any program may serve it.
#include "contract/progress.h"
#include "tests/fuzz/fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto progress = tj::from_progress_document(tj::fuzz::text_of(data, size));
  if (!progress) return 0;
  const std::string text = tj::to_progress_document(*progress);
  if (text.size() > tj::kProgressBytesMax) return 0;
  const auto again = tj::from_progress_document(text);
  TJ_CHECK(again.ok(), "what we write can be read");
  // `steps` of 0 or less are not known, and left out.
  auto known = *progress;
  known.steps = std::max(known.steps, 0LL);
  TJ_CHECK(*again == known, "a document reads as it was written");
  return 0;
}
