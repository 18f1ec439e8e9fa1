#include "trainer/checkpoint/training_state.h"

#include <torch/torch.h>

#include <cstring>

#include "trainer/checkpoint/safetensors.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

std::span<std::byte> raw_bytes(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
              "a checkpoint holds plain float32 tensors");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

std::vector<TensorBytes> bytes_of(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorBytes> list;
  for (const auto& [name, tensor] : tensors)
    list.push_back({.name = name, .shape = tensor.sizes().vec(), .bytes = raw_bytes(tensor)});
  return list;
}

Result<void> fill(const SafetensorsFile& file, const std::string& subject,
                  const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const TensorBytes* const stored = file.find(name);
    if (stored == nullptr || stored->shape != tensor.sizes().vec()) {
      return Error{
          .code = Code::invalid,
          .message = "tensor " + name + (stored == nullptr ? " is missing" : " has another shape"),
          .subject = subject};
    }
    std::memcpy(raw_bytes(tensor).data(), stored->bytes.data(), stored->bytes.size());
  }
  return {};
}

}  // namespace

void append_tensors(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                    const std::vector<at::Tensor>& tensors, const std::string& prefix) {
  for (std::size_t index = 0; index < names.size(); ++index)
    list.push_back({.name = prefix + names[index], .tensor = tensors[index]});
}

Result<fs::path> save_checkpoint(const fs::path& out, const StateTensors& state,
                                 Manifest manifest) {
  auto draft = CheckpointDraft::begin(out, manifest.step);
  if (!draft) return draft.error();
  const auto add = [&](const char* name, Result<FileDigest> written) -> Result<void> {
    if (!written) return written.error();
    manifest.files[name] = *written;
    return {};
  };
  // "format": "pt" is what Hugging Face's loader asks for.
  const auto model = add(kModelFile, write_safetensors(draft->folder() / kModelFile,
                                                       bytes_of(state.model), {{"format", "pt"}}));
  if (!model) return model.error();
  const auto optimizer = add(kOptimizerFile, write_safetensors(draft->folder() / kOptimizerFile,
                                                               bytes_of(state.optimizer), {}));
  if (!optimizer) return optimizer.error();
  const auto config = add(kConfigFile, write_durably(draft->folder() / kConfigFile,
                                                     hugging_face_config(manifest.model)));
  if (!config) return config.error();
  return draft->commit(manifest);
}

Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const StateTensors& state) {
  const auto weights = SafetensorsFile::open(checkpoint.folder / kModelFile);
  if (!weights) return weights.error();
  const auto moments = SafetensorsFile::open(checkpoint.folder / kOptimizerFile);
  if (!moments) return moments.error();
  if (auto filled = fill(*weights, kModelFile, state.model); !filled) return filled;
  return fill(*moments, kOptimizerFile, state.optimizer);
}

}  // namespace tj::trainer
