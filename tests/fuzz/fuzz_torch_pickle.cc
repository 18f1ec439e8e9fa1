// data.pkl of a file of torch.save: what is read of it can be written and read again.
#include "tests/fuzz/fuzzed.h"
#include "trainer/checkpoint/torch_pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tj::trainer;
  const auto read = tensors_in_pickle({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  std::vector<TensorToPickle> to_write;
  for (const auto& tensor : *read) {
    TJ_CHECK(tensor.offset >= 0 && tensor.shape.size() == tensor.stride.size(), "checked");
    for (const auto extent : tensor.shape) TJ_CHECK(extent >= 0, "an extent");
    to_write.push_back({.name = tensor.name, .shape = {2, 3}, .dtype = tensor.dtype});
  }
  const auto again = tensors_in_pickle(pickle_of(to_write));
  TJ_CHECK(again && again->size() == read->size(), "what is written can be read");
  return 0;
}
