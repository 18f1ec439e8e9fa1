// How often each pair of tokens stands side by side. Open addressing; pairs of which none is left
// go when it has to grow, so that it stays below the text in size.
#pragma once
#include <cstdint>
#include <vector>

namespace tj::trainer {

class PairCounts {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Pair {
    std::uint64_t key = UINT64_MAX;  // pair_key(); this one: free, no token has such an id
    std::int64_t count = 0;
    std::uint32_t mark = kNone;  // the caller's, for a while
  };

  PairCounts();
  /// The pair, with a count of 0 if it is new. Valid until the next call.
  Pair& at(std::uint64_t key);
  /// 0 where there is none.
  std::int64_t count_of(std::uint64_t key) const;

 private:
  std::size_t place_of(std::uint64_t key) const;
  /// Anew, and larger if need be, with the pairs that have a count or a mark.
  void rebuild();

  std::vector<Pair> slots_;  // a power of two of them
  std::size_t used_ = 0;
  int shift_ = 0;
};

}  // namespace tj::trainer
