// What `torch.save(model.state_dict())` says of its tensors: data.pkl of the archive, as values.
// Nothing in it is executed: of the pickle's opcodes those are known that such a file has, and of
// its functions the three that put a tensor together. Pure, no torch.
// Sources: Python's Lib/pickletools.py; pytorch/torch/serialization.py and torch/_utils.py.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// A window on one storage of the archive.
struct PickledTensor {
  std::string name;
  std::string dtype;        // in the words of safetensors: "F32", "F16", "BF16", ...
  std::string storage;      // of the archive's file data/<storage>
  std::int64_t offset = 0;  // elements
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;  // elements; none below 0
};

/// The tensors of a dictionary of tensors, or of its entry "state_dict", in their order; entries
/// that are no tensors are left out. Fails with Code::invalid, and the place, for all that such a
/// file has not.
Result<std::vector<PickledTensor>> tensors_in_pickle(std::string_view pickle);

/// torch's class of a storage of a type in the words of safetensors: "FloatStorage" of "F32". None:
/// it has no such class.
std::optional<std::string> torch_storage(std::string_view dtype);

/// The opposite, for contiguous tensors, each with a storage of its own; these are named "0", "1",
/// ... in the order given.
struct TensorToPickle {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string dtype = "F32";  // one that torch_storage() knows
};
std::string pickle_of(std::span<const TensorToPickle> tensors);

}  // namespace tj::trainer
