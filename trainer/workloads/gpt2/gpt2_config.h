// The shape of a GPT-2 and its named presets. Torch-free: sizes and names of all tensors follow
// from it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trainer/workload/block_hooks.h"
#include "trainer/workload/preset.h"
#include "trainer/workload/tensor_spec.h"

namespace tj::trainer {

inline constexpr std::size_t kTensorsBeforeLayers = 2;  // wte, wpe
inline constexpr std::size_t kTensorsOfLayer = 12;

inline constexpr std::int64_t kByteVocabulary = 256;

/// The forms of GELU (Hendrycks and Gimpel 2016, section 2): GPT-2's, which is an approximation by
/// tanh, and the one by the error function itself. Their numbers stand in manifests.
enum class Gelu { tanh, erf };
inline constexpr const char* kGeluNames[] = {"tanh", "erf"};
inline const char* to_string(Gelu gelu) { return kGeluNames[static_cast<int>(gelu)]; }
std::optional<Gelu> gelu_from(std::string_view name);

struct Gpt2Config {
  std::int64_t layers = 4;
  std::int64_t heads = 4;
  std::int64_t width = 128;
  std::int64_t context = 64;  // tokens in one sequence
  std::int64_t vocabulary = kByteVocabulary;
  Gelu gelu = Gelu::tanh;
  bool operator==(const Gpt2Config&) const = default;
};

/// How such models are usually trained.
std::span<const Preset> gpt2_presets();
/// The shape of the model of one of them.
Gpt2Config gpt2_model(const Preset& preset);

/// All trained tensors in order, named as in a checkpoint of Hugging Face's GPT2LMHeadModel;
/// matrices are [in, out], as its Conv1D stores them. The head is tied to wte and therefore absent.
std::vector<TensorSpec> gpt2_tensors(const Gpt2Config& config);
std::int64_t parameter_count(const Gpt2Config& config);
/// Embeddings, each layer, and the last norm with the head; tensors are indices of gpt2_tensors().
std::vector<ModelBlock> gpt2_blocks(const Gpt2Config& config);

}  // namespace tj::trainer
