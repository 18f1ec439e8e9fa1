#include "trainer/workload/workload.h"

#include <numeric>

namespace tj::trainer {
namespace {

Error takes_no_weights(const std::string& path) {
  return {.code = Code::invalid,
          .message = "this model does not begin with weights of other files",
          .subject = path};
}

}  // namespace

Result<void> Workload::read_init(const std::string& path) { return takes_no_weights(path); }

OpenedData Workload::make_up_data() {
  return {
      .source = {},
      .failure = bad_config(Error{.code = Code::invalid,
                                  .message = "is missing: only its data says what this model is",
                                  .subject = "--data"})};
}

std::vector<ModelBlock> Workload::blocks() const {
  ModelBlock whole{.tensors = std::vector<std::size_t>(tensors().size())};
  std::iota(whole.tensors.begin(), whole.tensors.end(), 0);
  return {whole};
}

Result<TensorReader> Workload::open_initial_weights(const std::string& path) const {
  return takes_no_weights(path);
}

Result<Choice> choose_workload(Registry registry, const std::optional<std::string>& model) {
  if (!model) return Choice{&registry.front(), registry.front().presets.front()};
  std::string names;
  for (const auto& entry : registry) {
    for (const auto& preset : entry.presets) {
      if (preset.name == *model) return Choice{&entry, preset};
      names += (names.empty() ? "" : ", ") + std::string(preset.name);
    }
  }
  return Error{.code = Code::invalid,
               .message = "is \"" + *model + "\"; it must be one of " + names,
               .subject = "--model"};
}

}  // namespace tj::trainer
