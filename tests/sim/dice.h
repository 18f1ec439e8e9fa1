// The one source of chance of a simulated world: the same seed gives the same world, on any machine
// and with any standard library (SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
#pragma once
#include <chrono>
#include <cstdint>
#include <iterator>
#include <span>

#include "contract/result.h"

namespace tj::sim {

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15ULL);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 31);
  }
  /// 0 .. count-1.
  int below(std::size_t count) {
    TJ_CHECK(count > 0, "nothing to choose from");
    return static_cast<int>(next() % count);
  }
  /// first .. last.
  int between(int first, int last) {
    return first + below(static_cast<std::size_t>(last - first + 1));
  }
  /// True `count` times in a thousand.
  bool per_mille(int count) { return below(1000) < count; }
  bool percent(int count) { return per_mille(10 * count); }
  template <typename Choices>
  const auto& pick(const Choices& choices) {
    return choices[static_cast<std::size_t>(below(std::size(choices)))];
  }
  /// An index, as often as its weight says.
  std::size_t weighted(std::span<const int> weights) {
    int total = 0;
    for (const int weight : weights) total += weight;
    int left = below(static_cast<std::size_t>(total));
    for (std::size_t index = 0; index < weights.size(); ++index) {
      left -= weights[index];
      if (left < 0) return index;
    }
    return weights.size() - 1;
  }
  std::chrono::milliseconds up_to(std::chrono::milliseconds most) {
    return std::chrono::milliseconds{between(0, static_cast<int>(most.count()))};
  }

 private:
  std::uint64_t state_;
};

/// The seed of one of a run's worlds.
inline std::uint64_t world_seed(std::uint64_t run_seed, std::uint64_t world) {
  Dice mixer(run_seed ^ (world * 0xd1342543de82ef95ULL));
  return mixer.next();
}

}  // namespace tj::sim
