// The weights of a frozen model by its layers: whole on each rank, or shared out, so that a rank
// keeps a part of each layer and has all of it while it computes. They have no gradient, so that
// gathering is all there is to do. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/values/flat_layout.h"

namespace tj::trainer {

class FrozenLayers {
 public:
  using Layer = std::vector<at::Tensor>;

  /// Whole on this rank.
  explicit FrozenLayers(std::vector<Layer> layers) : layers_(std::move(layers)) {}
  /// Keeps this rank's part of each, on `device`. `whole` gives them one after another, so that no
  /// two must be there at once. All tensors are of one type; `ranks` outlives it.
  using Give = std::function<Layer(std::size_t layer)>;
  FrozenLayers(std::size_t count, const Give& whole, Communicator& ranks, at::Device device);

  using Compute = std::function<void(std::size_t layer, at::TensorList tensors)>;
  /// Calls `compute` for the layers from `begin` to before `end`, in their order. Where they are
  /// shared out that is collective, and the next layer is gathered while one computes: a rank that
  /// has nothing to compute calls it all the same. The tensors are there until `compute` returns.
  void walk(std::size_t begin, std::size_t end, const Compute& compute) const;

  bool is_shared_out() const { return ranks_ != nullptr; }
  /// That this rank keeps between two walks.
  std::int64_t held_bytes() const;

 private:
  struct Part {
    FlatLayout layout;
    std::vector<std::vector<std::int64_t>> shapes;
    at::Tensor mine;  // flat
  };

  at::Tensor whole_of(std::size_t layer) const;
  Layer windows(std::size_t layer) const;

  std::vector<Layer> layers_;         // where they are whole
  Communicator* ranks_ = nullptr;     // null: they are
  std::vector<Part> parts_;           // of each layer
  std::array<at::Tensor, 2> places_;  // for the layer that computes, and for the one that comes
};

}  // namespace tj::trainer
