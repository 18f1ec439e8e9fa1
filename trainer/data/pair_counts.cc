#include "trainer/data/pair_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tj::trainer {
namespace {
constexpr std::size_t kSlotsMin = 4096;
constexpr std::uint64_t kFree = UINT64_MAX;
}  // namespace

PairCounts::PairCounts() : slots_(kSlotsMin), shift_(64 - std::countr_zero(kSlotsMin)) {}

PairCounts::Pair& PairCounts::at(std::uint64_t key) {
  std::size_t place = place_of(key);
  if (slots_[place].key == key) return slots_[place];
  if (4 * (used_ + 1) > 3 * slots_.size()) {
    rebuild();
    place = place_of(key);
  }
  ++used_;
  slots_[place].key = key;
  return slots_[place];
}

std::int64_t PairCounts::count_of(std::uint64_t key) const {
  const Pair& found = slots_[place_of(key)];
  return found.key == key ? found.count : 0;
}

/// Of the slots from the key's own on the first that has it or is free.
std::size_t PairCounts::place_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = key * 0x9e3779b97f4a7c15U >> shift_;  // Knuth: multiplicative hashing
  while (slots_[at].key != key && slots_[at].key != kFree) at = (at + 1) & mask;
  return at;
}

void PairCounts::rebuild() {
  const auto is_live = [](const Pair& pair) {
    return pair.key != kFree && (pair.count != 0 || pair.mark != kNone);
  };
  const auto live = static_cast<std::size_t>(std::ranges::count_if(slots_, is_live));
  const std::size_t slot_count = std::max(kSlotsMin, std::bit_ceil(2 * live + 1));
  const std::vector<Pair> before = std::exchange(slots_, std::vector<Pair>(slot_count));
  shift_ = 64 - std::countr_zero(slot_count);
  used_ = live;
  for (const Pair& pair : before) {
    if (is_live(pair)) slots_[place_of(pair.key)] = pair;
  }
}

}  // namespace tj::trainer
