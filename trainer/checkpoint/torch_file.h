// A file of torch.save with a dictionary of tensors (.pth, .pt): read without running anything
// of it. Includes torch. torch_archive.h writes them.
// Source: pytorch/docs/source/notes/serialization.rst: a ZIP archive of data.pkl, data/<storage>.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "contract/result.h"
#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/torch_pickle.h"

namespace tj::trainer {

class TorchFile {
 public:
  /// Fails with Code::invalid, and the cause, for what is no such file.
  static Result<TorchFile> open(const std::filesystem::path& path);

  const std::map<std::string, PickledTensor>& tensors() const { return tensors_; }
  /// Elements of the flat tensor from `begin` on, as float32. Fails as read_floats().
  Result<void> read(const PickledTensor& tensor, std::span<float> floats, std::int64_t begin) const;

 private:
  struct Archive;
  std::string path_;
  std::shared_ptr<Archive> archive_;
  std::map<std::string, PickledTensor> tensors_;
};

}  // namespace tj::trainer
