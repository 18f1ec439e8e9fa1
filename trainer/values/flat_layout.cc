#include "trainer/values/flat_layout.h"

#include <algorithm>

namespace tj::trainer {
namespace {

std::int64_t rounded_up(std::int64_t elements, std::int64_t multiple) {
  return (elements + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatLayout::FlatLayout(std::span<const std::int64_t> sizes, int world_size)
    : world_size_(world_size), sizes_(sizes.begin(), sizes.end()) {
  std::int64_t end = 0;
  for (const auto size : sizes) {
    offsets_.push_back(end);
    end += rounded_up(size, kShardAlignment);
  }
  shard_size_ = rounded_up(end, kShardAlignment * world_size_) / world_size_;
}

ElementRange FlatLayout::part(std::size_t tensor, int rank) const {
  const auto in_tensor = [&](std::int64_t element) {
    return std::clamp<std::int64_t>(element - offsets_[tensor], 0, sizes_[tensor]);
  };
  return {in_tensor(rank * shard_size_), in_tensor((rank + 1) * shard_size_)};
}

}  // namespace tj::trainer
