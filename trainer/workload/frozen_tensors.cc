#include "trainer/workload/frozen_tensors.h"

#include <algorithm>

#include "trainer/values/glob.h"

namespace tj::trainer {
namespace {

std::vector<std::string> trained_names(std::span<const TensorSpec> tensors) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors)
    if (tensor.kind == TensorKind::trained) names.push_back(tensor.name);
  return names;
}

}  // namespace

Result<std::vector<TensorSpec>> frozen_by(std::span<const std::string> patterns,
                                          std::vector<TensorSpec> tensors,
                                          const std::string& flag) {
  const auto names = trained_names(tensors);
  const auto refused = [&](const std::string& message) {
    return Error{.code = Code::invalid, .message = message, .subject = flag};
  };
  for (const auto& pattern : patterns) {
    const auto is_meant = [&](const std::string& name) { return matches(pattern, name); };
    if (std::ranges::none_of(names, is_meant))
      return refused("is \"" + pattern +
                     "\"; it must match the name of a trained tensor, such as " +
                     one_of_text(nearest_names(pattern, names)));
    for (auto& tensor : tensors)
      if (tensor.kind == TensorKind::trained && is_meant(tensor.name))
        tensor.kind = TensorKind::frozen;
  }
  if (!patterns.empty() && trained_names(tensors).empty())
    return refused("leaves nothing to train of " + std::to_string(names.size()) + " tensors");
  return tensors;
}

}  // namespace tj::trainer
