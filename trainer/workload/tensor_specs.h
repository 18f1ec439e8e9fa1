// The tensors of a model, listed one behind the other, with the names and the first values of the
// usual kinds. Pure.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

class TensorSpecs {
 public:
  /// `kind`: of all that are added.
  explicit TensorSpecs(std::vector<TensorSpec>& specs, TensorKind kind = TensorKind::trained)
      : specs_(specs), kind_(kind) {}

  std::size_t next() const { return specs_.size(); }

  void add(const std::string& name, std::vector<std::int64_t> shape, TensorInit init = {}) {
    specs_.push_back({.name = name, .shape = std::move(shape), .init = init, .kind = kind_});
  }
  /// Rows that are looked up.
  void table(const std::string& name, std::int64_t rows, std::int64_t width) {
    add(name + ".weight", {rows, width}, of_inputs(width));
    specs_.back().layout = MatrixLayout::rows;
  }
  /// Outputs of the variance of the inputs.
  void weight(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", {out, in}, of_inputs(in));
  }
  void linear(const std::string& name, std::int64_t out, std::int64_t in) {
    weight(name, out, in);
    add(name + ".bias", {out});
  }
  /// A norm without a bias.
  void rms_norm(const std::string& name, std::int64_t width) {
    add(name + ".weight", {width}, {.kind = TensorInit::Kind::ones});
  }
  void layer_norm(const std::string& name, std::int64_t width) {
    rms_norm(name, width);
    add(name + ".bias", {width});
  }
  void freeze_from(std::size_t first) {
    for (auto index = first; index < specs_.size(); ++index) freeze(index);
  }
  void freeze(std::size_t index) { specs_[index].kind = TensorKind::frozen; }

  /// What a matrix of so many inputs begins with.
  static TensorInit of_inputs(std::int64_t in) {
    return random(1 / std::sqrt(static_cast<double>(in)));
  }
  static TensorInit random(double spread) {
    return {.kind = TensorInit::Kind::normal, .scale = spread};
  }

 private:
  std::vector<TensorSpec>& specs_;
  TensorKind kind_;
};

}  // namespace tj::trainer
