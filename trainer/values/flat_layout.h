// Several tensors as one flat row of elements, cut into equal shards, one for each rank. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tj::trainer {

/// Elements [begin, end) of a flat tensor.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

/// All extents multiplied. What does not fit, as in a shape that somebody else wrote, wraps.
inline std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const auto extent : shape) count *= static_cast<std::uint64_t>(extent);
  return static_cast<std::int64_t>(count);
}

/// Tensors begin, and shards are cut, at multiples of so many elements. A kernel that works on 64
/// bytes at a time and on the rest one by one then rounds every element as on the whole tensor.
inline constexpr std::int64_t kShardAlignment = 16;

class FlatLayout {
 public:
  /// `sizes`: elements of each tensor.
  FlatLayout(std::span<const std::int64_t> sizes, int world_size);

  std::int64_t shard_size() const { return shard_size_; }
  /// All shards together; what no tensor fills is padding.
  std::int64_t size() const { return shard_size_ * world_size_; }
  std::int64_t offset(std::size_t tensor) const { return offsets_[tensor]; }
  /// Which elements of the tensor lie in the shard of `rank`; begin == end: none.
  ElementRange part(std::size_t tensor, int rank) const;

 private:
  std::int64_t world_size_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> offsets_;
  std::int64_t shard_size_ = 0;
};

}  // namespace tj::trainer
