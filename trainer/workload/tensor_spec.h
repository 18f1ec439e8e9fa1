// One tensor of a model, before it is there.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/values/flat_layout.h"

namespace tj::trainer {

enum class TensorKind {
  trained,  // has a gradient and moments
  frozen,   // never changes: no gradient, no moments, whole on each rank
  buffer,   // changed by the passes and by no gradient, such as a moving average
};

/// What a tensor holds before the first step.
struct TensorInit {
  enum class Kind {
    zeros,
    ones,
    constant,
    normal,
    uniform,
    dirac,  // normal, and in the middle of a convolution what passes its input on: channel i to i,
            // several of them as their mean, or one to several
  };
  Kind kind = Kind::zeros;
  double scale = 0;  // the constant, standard deviation, or uniform in [-scale, scale)
  /// Of a dirac: so many outputs, one behind the other, get the same. A pixel shuffle makes one
  /// place larger of them.
  std::int64_t repeats = 1;
  bool operator==(const TensorInit&) const = default;
};

/// Which way round a matrix lies, for those who may hold it otherwise: adapters as PEFT has them.
enum class MatrixLayout {
  outputs_inputs,  // as torch.nn.Linear's: x W^T
  inputs_outputs,  // as that of GPT-2's Conv1D: x W
  rows,            // a table whose rows are looked up, as torch.nn.Embedding's
};

struct TensorSpec {
  std::string name;                 // as in the checkpoints that others read
  std::vector<std::int64_t> shape;  // in the order in which it lies in memory
  TensorInit init = {};
  TensorKind kind = TensorKind::trained;
  /// Whether checkpoints hold it. A frozen tensor that they don't is made anew by each start.
  bool is_saved = true;
  /// False: only the training needs it. Checkpoints hold it in training.safetensors, apart from the
  /// weights that others read, and not its average; no --init-from begins with it.
  bool is_published = true;
  MatrixLayout layout = MatrixLayout::outputs_inputs;
};

inline std::int64_t element_count(const TensorSpec& spec) { return element_count(spec.shape); }

inline std::int64_t trained_elements(std::span<const TensorSpec> tensors) {
  std::int64_t elements = 0;
  for (const auto& tensor : tensors)
    if (tensor.kind == TensorKind::trained) elements += element_count(tensor);
  return elements;
}

}  // namespace tj::trainer
