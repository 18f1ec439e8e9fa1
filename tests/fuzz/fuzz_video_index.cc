// A line of videos.index.jsonl, which lies beside videos of any origin.
#include "tests/fuzz/fuzzed.h"
#include "trainer/data/video/video_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entry = tj::trainer::index_entry_from(tj::fuzz::text_of(data, size));
  if (!entry) return 0;
  const auto again = tj::trainer::index_entry_from(index_line(*entry));
  TJ_CHECK(again && *again == *entry, "a line reads as it was written");
  const auto& times = entry->facts.times;
  if (!times.are_known()) return 0;
  const auto last = times.frames - 1;
  TJ_CHECK(times.at(0) == times.start && times.at(last) >= times.at(last / 2), "times ascend");
  TJ_CHECK(times.number_at(times.at(last)) == last, "each frame has its time");
  TJ_CHECK(times.key_before(last) <= last, "each frame can be reached");
  return 0;
}
