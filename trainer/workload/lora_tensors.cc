#include "trainer/workload/lora_tensors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "trainer/values/adapter_names.h"
#include "trainer/values/glob.h"

namespace tj::trainer {
namespace {

constexpr std::string_view kWeightEnd = ".weight";

bool is_matrix(const TensorSpec& tensor) { return tensor.shape.size() == 2; }

/// Which of the tensors match, of those that `may_be`.
template <typename MayBe>
Result<std::vector<bool>> matching(const std::string& flag,
                                   const std::vector<std::string>& patterns,
                                   const std::vector<TensorSpec>& tensors, MayBe&& may_be) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors)
    if (may_be(tensor)) names.push_back(tensor.name);
  std::vector<bool> is_meant(tensors.size());
  for (const auto& pattern : patterns) {
    bool has_match = false;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!may_be(tensors[i]) || !matches(pattern, tensors[i].name)) continue;
      is_meant[i] = has_match = true;
    }
    if (has_match) continue;
    const std::string which = names.empty()
                                  ? ", and this model has none"
                                  : ", such as " + one_of_text(nearest_names(pattern, names));
    const std::string what = flag == "--lora-targets" ? "matrix" : "tensor";
    return Error{
        .code = Code::invalid,
        .message = "is \"" + pattern + "\"; it must match the name of a trained " + what + which,
        .subject = flag};
  }
  return is_meant;
}

/// As PEFT calls what belongs to a layer (peft/utils/save_and_load.py): the module's name without
/// that of its weight.
std::string adapter_name(const std::string& weight, std::string_view part) {
  const bool is_of_module = weight.ends_with(kWeightEnd);
  const auto module = is_of_module ? weight.substr(0, weight.size() - kWeightEnd.size()) : weight;
  return std::string(kAdapterBegin) + module + std::string(part);
}

/// Base, A and B of one matrix.
std::array<TensorSpec, 3> adapters_of(const TensorSpec& matrix, std::int64_t rank) {
  const bool is_transposed = matrix.layout == MatrixLayout::inputs_outputs;
  const bool is_table = matrix.layout == MatrixLayout::rows;
  const auto outputs = matrix.shape[is_transposed ? 1 : 0];
  const auto inputs = matrix.shape[is_transposed ? 0 : 1];
  // As PEFT begins: A as torch.nn.Linear does, B with zeros, so that nothing has changed yet.
  const double spread = 1 / std::sqrt(static_cast<double>(inputs));
  const auto name = [&](std::string_view part) { return adapter_name(matrix.name, part); };
  return {TensorSpec{.name = name(kAdapterBaseEnd),
                     .shape = matrix.shape,
                     .kind = TensorKind::frozen,
                     .is_published = false},
          TensorSpec{.name = name(is_table ? kAdapterTableAEnd : kAdapterAEnd),
                     .shape = {rank, inputs},
                     .init = {.kind = TensorInit::Kind::uniform, .scale = spread},
                     .is_published = false},
          TensorSpec{.name = name(is_table ? kAdapterTableBEnd : kAdapterBEnd),
                     .shape = {outputs, rank},
                     .is_published = false}};
}

}  // namespace

Result<LoraTensors> with_lora(const LoraOptions& options, std::vector<TensorSpec> tensors) {
  const auto is_trained = [](const TensorSpec& tensor) {
    return tensor.kind == TensorKind::trained;
  };
  const auto targets =
      matching("--lora-targets", options.targets, tensors,
               [&](const auto& tensor) { return is_trained(tensor) && is_matrix(tensor); });
  if (!targets) return targets.error();
  const auto whole = matching("--lora-also", options.also, tensors, is_trained);
  if (!whole) return whole.error();
  LoraTensors tuned;
  const auto count = tensors.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (is_trained(tensors[i]) && (!(*whole)[i] || (*targets)[i]))
      tensors[i].kind = TensorKind::frozen;
    if (!(*targets)[i]) continue;
    const auto next = tensors.size();
    tuned.targets.push_back({.weight = i,
                             .base = next,
                             .a = next + 1,
                             .b = next + 2,
                             .is_transposed = tensors[i].layout == MatrixLayout::inputs_outputs});
    for (auto& adapter : adapters_of(tensors[i], options.rank))
      tensors.push_back(std::move(adapter));
  }
  tuned.tensors = std::move(tensors);
  return tuned;
}

std::vector<ModelBlock> with_lora(std::span<const LoraTarget> targets,
                                  std::vector<ModelBlock> blocks) {
  for (const auto& target : targets) {
    const auto uses = [&](const ModelBlock& block) {
      return std::ranges::find(block.tensors, target.weight) != block.tensors.end();
    };
    const auto first = std::ranges::find_if(blocks, uses);
    if (first == blocks.end()) continue;
    first->tensors.insert(first->tensors.end(), {target.a, target.b});
    first->reads_in_backward = true;
  }
  return blocks;
}

}  // namespace tj::trainer
