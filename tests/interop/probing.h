// What the probes of tests/interop/run read and write: files of tensors, and answers as plain
// numbers one behind the other. Includes torch.
#pragma once
#include <torch/types.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"

namespace tj::trainer {

inline int fail(const Error& error) {
  std::fprintf(stderr, "probe: %s\n", describe(error).c_str());
  return 1;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One tensor behind the other.
inline void write_values(const char* path, const std::vector<at::Tensor>& answers) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& answer : answers) {
    const auto values = answer.contiguous();
    file.write(static_cast<const char*>(values.data_ptr()),
               static_cast<std::streamsize>(values.nbytes()));
  }
}

/// Each tensor of a file, as floats.
inline Result<std::map<std::string, at::Tensor>> read_tensors(const char* path) {
  const auto catalog = TensorCatalog::open_file(path);
  if (!catalog) return catalog.error();
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, stored] : catalog->tensors()) {
    auto tensor = torch::empty(stored.shape);
    const std::span floats(tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel()));
    const auto read = read_tensor(&stored, {.name = name, .shape = stored.shape, .floats = floats});
    if (!read) return read.error();
    tensors[name] = tensor;
  }
  return tensors;
}

}  // namespace tj::trainer
