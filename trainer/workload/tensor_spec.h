// One tensor of a model, before it is there.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tj::trainer {

enum class TensorRole { embedding, norm_weight, bias, matrix, residual_matrix };

struct TensorSpec {
  std::string name;                 // as in the checkpoints that others read
  std::vector<std::int64_t> shape;  // in the order in which it lies in memory
  TensorRole role = TensorRole::matrix;
};

}  // namespace tj::trainer
