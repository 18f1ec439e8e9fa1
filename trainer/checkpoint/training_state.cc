#include "trainer/checkpoint/training_state.h"

#include <torch/torch.h>

#include <cstring>

#include "trainer/checkpoint/folder.h"

namespace tj::trainer {
namespace {

/// Not through torch where it can be helped: a copy of its own would start a second team of OpenMP
/// threads beside the one that trains.
void copy_out(const at::Tensor& source, std::span<std::byte> bytes) {
  if (source.is_cpu()) {
    std::memcpy(bytes.data(), source.data_ptr(), bytes.size());
  } else {
    torch::from_blob(bytes.data(), source.sizes(), torch::kFloat32).copy_(source);
  }
}

at::Tensor floats_at(std::byte* bytes, const ElementRange& part) {
  return torch::from_blob(bytes + static_cast<std::size_t>(part.begin) * sizeof(float),
                          {part.size()}, torch::kFloat32);
}

/// Of a tensor in parts: the writer receives, the others send.
StateTensor in_parts(const NamedTensor& named, Communicator& communicator) {
  const auto own = named.tensor.defined() ? named.tensor.detach() : torch::empty({0});
  const auto gather = [own, parts = named.parts, &communicator](std::span<std::byte> bytes) {
    for (int rank = 0; rank < communicator.world_size(); ++rank) {
      const auto& part = parts[static_cast<std::size_t>(rank)];
      if (part.size() == 0) continue;
      auto place = floats_at(bytes.data(), part);
      if (rank == communicator.rank()) {
        copy_out(own, {static_cast<std::byte*>(place.data_ptr()), place.nbytes()});
      } else {
        communicator.exchange(torch::empty({0}), place, rank);
      }
    }
  };
  const auto send = [own, &communicator](int writer) {
    auto none = torch::empty({0});
    if (own.numel() > 0) communicator.exchange(own, none, writer);
  };
  return {.name = named.name, .shape = named.shape, .copy_to = gather, .send_to = send};
}

StateGroup group_of(const std::string& stem, const std::vector<NamedTensor>& tensors,
                    Communicator& communicator) {
  StateGroup group{.stem = stem, .tensors = {}};
  for (const auto& named : tensors) {
    const auto& tensor = named.tensor;
    TORCH_CHECK(!tensor.defined() || (tensor.is_contiguous() && tensor.scalar_type() == at::kFloat),
                "a checkpoint holds plain float32 tensors; ", named.name, " is none");
    if (!named.parts.empty()) {
      group.tensors.push_back(in_parts(named, communicator));
      continue;
    }
    group.tensors.push_back({.name = named.name,
                             .shape = named.shape,
                             .copy_to = [source = tensor.detach()](std::span<std::byte> bytes) {
                               copy_out(source, bytes);
                             }});
  }
  return group;
}

/// Rank 0 has `whole` [elements of the tensor]; each rank gets its part.
void hand_out(Communicator& communicator, const NamedTensor& named, const at::Tensor& whole) {
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const auto& part = named.parts[static_cast<std::size_t>(rank)];
    if (part.size() == 0) continue;
    auto own = named.tensor.defined() ? named.tensor.detach() : at::Tensor();
    auto none = torch::empty({0});
    if (communicator.rank() == 0) {
      const auto of_rank = whole.narrow(0, part.begin, part.size());
      if (rank == 0) {
        own.copy_(of_rank);
      } else {
        communicator.exchange(of_rank, none, rank);
      }
    } else if (communicator.rank() == rank) {
      auto received = torch::empty({part.size()});
      communicator.exchange(none, received, 0);
      own.copy_(received);
    }
  }
}

std::int64_t elements_of(const NamedTensor& named) {
  std::int64_t elements = 1;
  for (const auto extent : named.shape) elements *= extent;
  return elements;
}

}  // namespace

void append_tensors(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                    const std::vector<at::Tensor>& tensors, const std::string& prefix) {
  for (std::size_t index = 0; index < names.size(); ++index)
    list.push_back({.name = prefix + names[index],
                    .tensor = tensors[index],
                    .shape = tensors[index].sizes().vec()});
}

std::vector<StateGroup> state_groups(const StateTensors& state, Communicator& communicator) {
  std::vector<StateGroup> groups{group_of(kModelStem, state.model, communicator),
                                 group_of(kOptimizerStem, state.optimizer, communicator)};
  if (!state.ema.empty()) groups.push_back(group_of(kEmaStem, state.ema, communicator));
  return groups;
}

Result<void> fill(Communicator& communicator, const std::vector<NamedTensor>& tensors,
                  const TensorReader& read) {
  const at::NoGradGuard no_grad;
  Result<void> first;
  for (const auto& named : tensors) {
    auto place = named.tensor.defined() ? named.tensor.detach() : at::Tensor();
    const bool is_whole = named.parts.empty();
    at::Tensor on_host;
    if (communicator.rank() == 0) {
      on_host = is_whole && place.is_cpu() ? place : torch::zeros({elements_of(named)});
      const TensorTarget target{.name = named.name,
                                .shape = named.shape,
                                .floats = {static_cast<float*>(on_host.data_ptr()),
                                           static_cast<std::size_t>(on_host.numel())}};
      // After a failure the others still wait for the rest of the tensors.
      if (first) first = read(target);
      if (is_whole && !place.is_cpu()) place.copy_(on_host.view(place.sizes()));
    }
    if (!is_whole) {
      hand_out(communicator, named, on_host);
    } else if (communicator.world_size() > 1) {
      communicator.broadcast(place, 0);
    }
  }
  return first;
}

}  // namespace tj::trainer
