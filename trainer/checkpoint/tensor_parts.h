// Tensors whose bytes lie in several places, as the slices of a checkpoint do, and a file of them.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/process/byte_part.h"

namespace tj::trainer {

struct TensorParts {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<BytePart> parts;  // one behind the other
  std::string dtype = kFloat32;
  std::size_t bytes() const;
};

Result<FileDigest> write_safetensors_of_parts(const std::filesystem::path& path,
                                              std::span<const TensorParts> tensors,
                                              const SafetensorsMetadata& metadata);

}  // namespace tj::trainer
