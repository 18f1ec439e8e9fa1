#include "trainer/workloads/pi0/pi0_weights.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using NamedTensors = std::map<std::string, const StoredTensor*>;

constexpr std::string_view kLeRobotPrefix = "model.";
constexpr std::string_view kVision = "paligemma_with_expert.paligemma.model.vision_tower.";
constexpr std::string_view kVisionModel = "vision_model.";
const std::string kWords =
    "paligemma_with_expert.paligemma.model.language_model.embed_tokens.weight";
const std::string kHead = "paligemma_with_expert.paligemma.lm_head.weight";
const std::string kExpertHead = "paligemma_with_expert.gemma_expert.lm_head.weight";
const std::string kPositions =
    "paligemma_with_expert.paligemma.model.vision_tower.vision_model.embeddings."
    "position_embedding.weight";
const std::string kActionsIn = "action_in_proj.weight";
const std::string kStateIn = "state_proj.weight";

Error wrong(const fs::path& path, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = path.string()};
}

/// openpi's name of a tensor.
std::string our_name(std::string name) {
  if (name.starts_with(kLeRobotPrefix)) name.erase(0, kLeRobotPrefix.size());
  const bool is_of_vision = name.starts_with(kVision);
  if (is_of_vision && name.compare(kVision.size(), kVisionModel.size(), kVisionModel) != 0)
    name.insert(kVision.size(), kVisionModel);
  return name;
}

/// Tensors under our names.
Result<NamedTensors> by_our_names(const TensorCatalog& catalog, const fs::path& path) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : catalog.tensors()) {
    const auto ours = our_name(name);
    if (!tensors.emplace(ours, &tensor).second)
      return wrong(path, "tensor " + ours + " is there twice, under two names");
  }
  tensors.erase(kExpertHead);
  const auto head = tensors.extract(kHead);
  if (!head.empty() && !tensors.contains(kWords)) tensors[kWords] = head.mapped();
  return tensors;
}

Result<std::pair<std::int64_t, std::int64_t>> matrix_shape(const NamedTensors& tensors,
                                                           const std::string& name,
                                                           const fs::path& path) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) return wrong(path, "has no tensor " + name + "; is this a pi0?");
  const auto& shape = found->second->shape;
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1)
    return wrong(path, "tensor " + name + " has the shape " + shape_text(shape) +
                           "; it must have two extents");
  return std::pair(shape[0], shape[1]);
}

}  // namespace

Result<Pi0Sizes> read_pi0_sizes(const fs::path& path) {
  const auto catalog = TensorCatalog::open_named(path);
  if (!catalog) return catalog.error();
  const auto tensors = by_our_names(*catalog, path);
  if (!tensors) return tensors.error();
  const auto words = matrix_shape(*tensors, kWords, path);
  if (!words) return words.error();
  const auto positions = matrix_shape(*tensors, kPositions, path);
  if (!positions) return positions.error();
  const auto actions = matrix_shape(*tensors, kActionsIn, path);
  if (!actions) return actions.error();
  Pi0Sizes sizes{.kind = Pi0Config::Kind::pi05,
                 .vocabulary = words->first,
                 .action_width = actions->second,
                 .tokens_of_image = positions->first};
  if (!tensors->contains(kStateIn)) return sizes;
  const auto state = matrix_shape(*tensors, kStateIn, path);
  if (!state) return state.error();
  sizes.kind = Pi0Config::Kind::pi0;
  sizes.state_width = state->second;
  return sizes;
}

Result<TensorReader> open_pi0_weights(const fs::path& path, std::span<const TensorSpec> specs) {
  auto opened = TensorCatalog::open_named(path);
  if (!opened) return opened.error();
  const auto catalog = std::make_shared<const TensorCatalog>(std::move(*opened));
  auto tensors = by_our_names(*catalog, path);
  if (!tensors) return tensors.error();
  std::set<std::string> wanted;
  for (const auto& spec : specs) {
    wanted.insert(spec.name);
    const auto found = tensors->find(spec.name);
    if (found == tensors->end()) return wrong(path, "has no tensor " + spec.name);
    if (found->second->shape != spec.shape)
      return wrong(path, "tensor " + spec.name + " is " + shape_text(found->second->shape) +
                             ", the model's is " + shape_text(spec.shape) +
                             "; another --model has other shapes");
  }
  for (const auto& [name, tensor] : *tensors)
    if (!wanted.contains(name)) return wrong(path, "tensor " + name + " is none of this model's");
  return TensorReader([catalog, tensors = std::move(*tensors)](const TensorTarget& target) {
    const auto found = tensors.find(target.name);
    return read_tensor(found == tensors.end() ? nullptr : found->second, target);
  });
}

}  // namespace tj::trainer
