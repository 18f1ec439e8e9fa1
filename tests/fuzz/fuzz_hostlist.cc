// SLURM's compressed lists.
#include <algorithm>

#include "tests/fuzz/fuzzed.h"
#include "trainer/launch/hostlist.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = tj::fuzz::text_of(data, size);
  if (const auto hosts = tj::trainer::expand_hostlist(text)) {
    TJ_CHECK(!hosts->empty() && hosts->size() <= tj::trainer::kHostsMax, "bounded");
    for (const auto& host : *hosts) TJ_CHECK(!host.empty(), "a host has a name");
  }
  if (const auto counts = tj::trainer::expand_task_counts(text)) {
    TJ_CHECK(!counts->empty() && counts->size() <= tj::trainer::kHostsMax, "bounded");
    for (const int count : *counts) TJ_CHECK(count >= 1, "a node has a task");
  }
  return 0;
}
