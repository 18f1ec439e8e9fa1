// Writes what torch.load(weights_only=True) reads: a dictionary of tensors by name, such as
// torch.save(model.state_dict()) leaves. Needs no torch. Its counterpart is torch_file.h.
// Source: pytorch/docs/source/notes/serialization.rst and caffe2/serialize/inline_container.h.
#pragma once
#include <filesystem>
#include <span>

#include "contract/result.h"
#include "trainer/checkpoint/tensor_parts.h"

namespace tj::trainer {

/// Fails with Code::invalid, and its name, for a tensor of a type that torch's storages don't have.
Result<FileDigest> write_torch_archive(const std::filesystem::path& path,
                                       std::span<const TensorParts> tensors);

}  // namespace tj::trainer
