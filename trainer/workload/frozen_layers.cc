#include "trainer/workload/frozen_layers.h"

#include <torch/types.h>

#include <algorithm>
#include <memory>

namespace tj::trainer {
namespace {

/// Elements, 64 bytes at least in any type. A tensor begins where one of its own might: kernels may
/// add in another order by the place of what they add.
constexpr std::int64_t kAlignment = 64;

std::vector<std::int64_t> places_for(const FrozenLayers::Layer& layer) {
  std::vector<std::int64_t> sizes;
  for (const auto& tensor : layer)
    sizes.push_back((tensor.numel() + kAlignment - 1) / kAlignment * kAlignment);
  return sizes;
}

}  // namespace

FrozenLayers::FrozenLayers(std::size_t count, const Give& whole, Communicator& ranks,
                           at::Device device)
    : ranks_(&ranks) {
  const at::NoGradGuard no_gradients;
  std::int64_t largest = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const auto layer = whole(index);
    Part part{
        .layout = FlatLayout(places_for(layer), ranks.world_size()), .shapes = {}, .mine = {}};
    const auto size = part.layout.shard_size();
    const auto flat = torch::zeros({part.layout.size()}, layer.front().options());
    for (std::size_t i = 0; i < layer.size(); ++i) {
      part.shapes.push_back(layer[i].sizes().vec());
      flat.narrow(0, part.layout.offset(i), layer[i].numel()).copy_(layer[i].flatten());
    }
    part.mine = torch::empty({size}, flat.options().device(device));
    part.mine.copy_(flat.narrow(0, size * ranks.rank(), size));
    largest = std::max(largest, part.layout.size());
    parts_.push_back(std::move(part));
  }
  for (auto& place : places_) place = torch::empty({largest}, parts_.front().mine.options());
}

at::Tensor FrozenLayers::whole_of(std::size_t layer) const {
  return places_[layer % places_.size()].narrow(0, 0, parts_[layer].layout.size());
}

FrozenLayers::Layer FrozenLayers::windows(std::size_t layer) const {
  const auto whole = whole_of(layer);
  const auto& [layout, shapes, mine] = parts_[layer];
  Layer tensors;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    tensors.push_back(whole.narrow(0, layout.offset(i), element_count(shapes[i])).view(shapes[i]));
  return tensors;
}

void FrozenLayers::walk(std::size_t begin, std::size_t end, const Compute& compute) const {
  if (!is_shared_out()) {
    for (auto layer = begin; layer < end; ++layer) compute(layer, layers_[layer]);
    return;
  }
  std::unique_ptr<Pending> coming;
  const auto gather = [&](std::size_t layer) {
    auto whole = whole_of(layer);
    coming = ranks_->all_gather(parts_[layer].mine, whole);
  };
  if (begin < end) gather(begin);
  for (auto layer = begin; layer < end; ++layer) {
    coming->wait();
    // Into the place of the layer before: a GPU has all of its work behind which it must wait.
    if (layer + 1 < end) gather(layer + 1);
    compute(layer, windows(layer));
  }
}

std::int64_t FrozenLayers::held_bytes() const {
  std::size_t bytes = 0;
  for (const auto& layer : layers_)
    for (const auto& tensor : layer) bytes += tensor.nbytes();
  for (const auto& part : parts_) bytes += part.mine.nbytes();
  for (const auto& place : places_)
    if (place.defined()) bytes += place.nbytes();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace tj::trainer
