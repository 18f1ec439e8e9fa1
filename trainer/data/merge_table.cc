#include "trainer/data/merge_table.h"

#include <algorithm>
#include <bit>

#include "contract/result.h"

namespace tj::trainer {
namespace {
constexpr std::size_t kSlotsMin = 64;
}  // namespace

MergeTable::MergeTable(std::size_t merges) {
  TJ_CHECK(merges <= kNone, "a rank has 24 bits");
  slots_.assign(std::max(kSlotsMin, std::bit_ceil(2 * merges + 1)), kFree);
  mask_ = slots_.size() - 1;
  shift_ = 64 - std::countr_zero(slots_.size());
  merged_.reserve(merges);
}

bool MergeTable::add(std::uint32_t left, std::uint32_t right, std::uint32_t merged) {
  TJ_CHECK((left | right) >> kIdBits == 0, "an id has 20 bits");
  TJ_CHECK(2 * merged_.size() < slots_.size(), "there is room for as many as were promised");
  const std::uint64_t pair = std::uint64_t{left} << kIdBits | right;
  std::uint64_t& slot = slots_[place_of(pair)];
  if (slot != kFree) return false;
  slot = pair << kRankBits | merged_.size();
  merged_.push_back(merged);
  return true;
}

}  // namespace tj::trainer
