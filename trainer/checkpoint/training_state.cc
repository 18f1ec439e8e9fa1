#include "trainer/checkpoint/training_state.h"

#include <torch/torch.h>

#include <cstring>

#include "trainer/checkpoint/safetensors.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr const char* kFirstMoment = "exp_avg.";
constexpr const char* kSecondMoment = "exp_avg_sq.";

struct NamedTensors {
  const std::vector<std::string>& names;
  const std::vector<at::Tensor>& tensors;
  std::string prefix;
};

std::span<std::byte> raw_bytes(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
              "a checkpoint holds plain float32 tensors");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

void append(std::vector<TensorBytes>& list, const NamedTensors& named) {
  for (std::size_t index = 0; index < named.names.size(); ++index) {
    const auto& tensor = named.tensors[index];
    list.push_back({.name = named.prefix + named.names[index],
                    .shape = tensor.sizes().vec(),
                    .bytes = raw_bytes(tensor)});
  }
}

Result<void> fill(const SafetensorsFile& file, const std::string& subject,
                  const NamedTensors& named) {
  for (std::size_t index = 0; index < named.names.size(); ++index) {
    const std::string name = named.prefix + named.names[index];
    const auto& tensor = named.tensors[index];
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

Result<fs::path> save_checkpoint(const fs::path& out, const TrainingState& state,
                                 Manifest manifest) {
  auto draft = CheckpointDraft::begin(out, manifest.step);
  if (!draft) return draft.error();
  const auto& names = state.model.names();
  std::vector<TensorBytes> weights, moments;
  append(weights, {names, state.model.parameters(), ""});
  append(moments, {names, state.optimizer.first_moments(), kFirstMoment});
  append(moments, {names, state.optimizer.second_moments(), kSecondMoment});
  const auto add = [&](const char* name, Result<FileDigest> written) -> Result<void> {
    if (!written) return written.error();
    manifest.files[name] = *written;
    return {};
  };
  // "format": "pt" is what Hugging Face's loader asks for.
  const auto model =
      add(kModelFile, write_safetensors(draft->folder() / kModelFile, weights, {{"format", "pt"}}));
  if (!model) return model.error();
  const auto optimizer =
      add(kOptimizerFile, write_safetensors(draft->folder() / kOptimizerFile, moments, {}));
  if (!optimizer) return optimizer.error();
  const auto config = add(kConfigFile, write_durably(draft->folder() / kConfigFile,
                                                     hugging_face_config(manifest.model)));
  if (!config) return config.error();
  return draft->commit(manifest);
}

Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const TrainingState& state) {
  const auto& names = state.model.names();
  const auto weights = SafetensorsFile::open(checkpoint.folder / kModelFile);
  if (!weights) return weights.error();
  const auto moments = SafetensorsFile::open(checkpoint.folder / kOptimizerFile);
  if (!moments) return moments.error();
  if (auto filled = fill(*weights, kModelFile, {names, state.model.parameters(), ""}); !filled)
    return filled;
  if (auto filled =
          fill(*moments, kOptimizerFile, {names, state.optimizer.first_moments(), kFirstMoment});
      !filled)
    return filled;
  if (auto filled =
          fill(*moments, kOptimizerFile, {names, state.optimizer.second_moments(), kSecondMoment});
      !filled)
    return filled;
  state.optimizer.set_step_count(checkpoint.manifest.step);
  return {};
}

}  // namespace tj::trainer
