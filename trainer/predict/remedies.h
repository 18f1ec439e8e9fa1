// What a rank that had no room in memory would have needed, and which flags take less: sentences
// for its last words and for `trainer plan`. Pure.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/predict/memory.h"

namespace tj::trainer {

struct MemoryShortage {
  double bytes = 0;  // that a rank needs, by forecast
  RankRoom room = {};
  std::vector<Remedy> remedies = {};  // each by itself, the least change first
  std::string together = {};          // flags that fit together where none of them does by itself
};

/// "with --accumulation 16 (8 samples in a pass become 4) 38 GB, with --recompute 20 GB": those
/// that take at least a hundredth less than `bytes`; empty: none does.
std::string takes_less_text(std::span<const Remedy> remedies, double bytes);

/// "needs about 61 GB, and has 48 GB of one L40S; with ..."
std::string describe(const MemoryShortage& shortage);

/// Bytes of the GPU, as torch tells them where it has no room ("GPU 0 has a total capacity of 47.50
/// GiB of which ..."); absent: it tells none.
std::optional<double> told_capacity(std::string_view told);

}  // namespace tj::trainer
