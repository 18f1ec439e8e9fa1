// The weights of a VGGT from its published checkpoint: safetensors or a file of torch.save, with or
// without the heads, which are passed over. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>

#include "contract/result.h"
#include "trainer/workload/model_options.h"
#include "trainer/workloads/qwen_vggt/vggt.h"

namespace tj::trainer {

/// The sizes that the tensors of `path` have: a folder with model.safetensors, a .safetensors, .pt
/// or .pth file. Reads no weights. Fails with Code::invalid for what can't be read or is no VGGT.
Result<VggtConfig> read_vggt_config(const std::filesystem::path& path);

/// Reads it in the type that products are computed in; with `ranks` a part of each layer of it
/// stays on each of them. Fails as read_vggt_config(), and for tensors that are missing, too many
/// or of a shape that does not fit the others': each is named.
Result<std::unique_ptr<Vggt>> open_vggt(const std::filesystem::path& path,
                                        const ModelOptions& options, Communicator* ranks = nullptr);

}  // namespace tj::trainer
