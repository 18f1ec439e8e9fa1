// Which pairs of tokens merge, when, and into what. Read for each pair of neighbours in a text,
// so a pair takes eight bytes: its ids, 20 bits each, and its rank.
#pragma once
#include <cstdint>
#include <vector>

namespace tj::trainer {

inline std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

class MergeTable {
 public:
  static constexpr int kIdBits = 20;
  static constexpr int kRankBits = 64 - 2 * kIdBits;
  static constexpr std::uint32_t kNone = (1U << kRankBits) - 1;  // no rank

  /// Room for `merges`, at most kNone of them.
  explicit MergeTable(std::size_t merges = 0);

  /// The next rank: `left` and `right`, which are ids of at most 20 bits, become `merged`. False
  /// when the pair is there already.
  bool add(std::uint32_t left, std::uint32_t right, std::uint32_t merged);

  std::size_t size() const { return merged_.size(); }
  /// The lower it is, the earlier the pair merges; kNone: it doesn't.
  std::uint32_t rank_of(std::uint32_t left, std::uint32_t right) const {
    const std::uint64_t pair = std::uint64_t{left} << kIdBits | right;
    const std::uint64_t slot = slots_[place_of(pair)];
    return static_cast<std::uint32_t>(slot & kNone);  // of a free one: kNone
  }
  std::uint32_t merged(std::uint32_t rank) const { return merged_[rank]; }

 private:
  static constexpr std::uint64_t kFree = UINT64_MAX;

  /// Of the slots from the pair's own on the first that has it or is free.
  std::size_t place_of(std::uint64_t pair) const {
    std::size_t at = pair * 0x9e3779b97f4a7c15U >> shift_;  // Knuth: multiplicative hashing
    while (slots_[at] != kFree && slots_[at] >> kRankBits != pair) at = (at + 1) & mask_;
    return at;
  }

  std::vector<std::uint64_t> slots_;  // pair << kRankBits | rank; a power of two of them
  std::size_t mask_ = 0;
  int shift_ = 0;
  std::vector<std::uint32_t> merged_;  // by rank
};

}  // namespace tj::trainer
