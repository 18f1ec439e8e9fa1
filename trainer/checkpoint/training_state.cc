#include "trainer/checkpoint/training_state.h"

#include <torch/torch.h>

#include <cstring>

namespace tj::trainer {
namespace {

StateGroup group_of(const std::string& stem, const std::vector<NamedTensor>& tensors) {
  StateGroup group{.stem = stem, .tensors = {}};
  for (const auto& [name, tensor] : tensors) {
    TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
                "a checkpoint holds plain float32 tensors; ", name, " is none");
    group.tensors.push_back(
        {.name = name,
         .shape = tensor.sizes().vec(),
         .copy_to = [source = tensor.detach()](std::span<std::byte> bytes) {
           // Not through torch where it can be helped: a copy of its own would start a second team
           // of OpenMP threads beside the one that trains.
           if (source.is_cpu()) {
             std::memcpy(bytes.data(), source.data_ptr(), bytes.size());
           } else {
             torch::from_blob(bytes.data(), source.sizes(), torch::kFloat32).copy_(source);
           }
         }});
  }
  return group;
}

}  // namespace

void append_tensors(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                    const std::vector<at::Tensor>& tensors, const std::string& prefix) {
  for (std::size_t index = 0; index < names.size(); ++index)
    list.push_back({.name = prefix + names[index], .tensor = tensors[index]});
}

std::vector<StateGroup> state_groups(const StateTensors& state) {
  std::vector<StateGroup> groups{group_of(kModelStem, state.model),
                                 group_of(kOptimizerStem, state.optimizer)};
  if (!state.ema.empty()) groups.push_back(group_of(kEmaStem, state.ema));
  return groups;
}

Result<void> fill(const std::vector<NamedTensor>& tensors,
                  const std::function<Result<void>(std::span<const TensorTarget>)>& read) {
  std::vector<at::Tensor> on_host;  // the tensors themselves, unless they lie on another device
  std::vector<TensorTarget> targets;
  for (const auto& [name, tensor] : tensors) {
    const auto place = tensor.detach();
    on_host.push_back(place.is_cpu() ? place : torch::empty(place.sizes(), torch::kFloat32));
    targets.push_back({.name = name,
                       .shape = place.sizes().vec(),
                       .floats = {static_cast<float*>(on_host.back().data_ptr()),
                                  static_cast<std::size_t>(place.numel())}});
  }
  if (auto done = read(targets); !done) return done;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto place = tensors[index].tensor.detach();
    if (!place.is_cpu()) place.copy_(on_host[index]);
  }
  return {};
}

Result<void> load_checkpoint(const FoundCheckpoint& checkpoint, const StateTensors& state) {
  const std::pair<const char*, const std::vector<NamedTensor>*> groups[] = {
      {kModelStem, &state.model}, {kOptimizerStem, &state.optimizer}, {kEmaStem, &state.ema}};
  for (const auto& [stem, tensors] : groups) {
    if (tensors->empty()) continue;
    const auto catalog = TensorCatalog::open(checkpoint.folder, stem);
    if (!catalog) return catalog.error();
    const auto filled = fill(*tensors, [&](std::span<const TensorTarget> targets) {
      return read_tensors(*catalog, targets);
    });
    if (!filled) return filled;
  }
  return {};
}

}  // namespace tj::trainer
