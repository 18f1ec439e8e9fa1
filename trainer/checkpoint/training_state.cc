#include "trainer/checkpoint/training_state.h"

#include <torch/torch.h>

#include <cstring>
#include <future>
#include <utility>

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

/// Rank `root` has `whole` [elements of the tensor]; each rank gets its part.
void hand_out(Communicator& communicator, const NamedTensor& named, const at::Tensor& whole,
              int root) {
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const auto& part = named.parts[static_cast<std::size_t>(rank)];
    if (part.size() == 0) continue;
    auto own = named.tensor.defined() ? named.tensor.detach() : at::Tensor();
    auto none = torch::empty({0});
    if (communicator.rank() == root) {
      const auto of_rank = whole.narrow(0, part.begin, part.size());
      if (rank == root) {
        own.copy_(of_rank);
      } else {
        communicator.exchange(of_rank, none, rank);
      }
    } else if (communicator.rank() == rank) {
      auto received = torch::empty({part.size()});
      communicator.exchange(none, received, root);
      own.copy_(received);
    }
  }
}

std::int64_t elements_of(const NamedTensor& named) {
  std::int64_t elements = 1;
  for (const auto extent : named.shape) elements *= extent;
  return elements;
}

/// The tensors that this rank reads of all, each while the one before is on its way to the others.
class ReadAhead {
 public:
  ReadAhead(const std::vector<NamedTensor>& tensors, const TensorReader& read, int rank,
            int readers)
      : tensors_(tensors), read_(read), stride_(static_cast<std::size_t>(readers)) {
    next_ = rank < readers ? static_cast<std::size_t>(rank) : tensors.size();
    begin();
  }

  /// Float32 and whole, on the host; after a failure, of which the others do not know, anything.
  at::Tensor next() {
    auto [tensor, done] = under_way_.get();
    if (failure_ && !done) failure_ = done;
    begin();
    return tensor;
  }

  const Result<void>& failure() const { return failure_; }

 private:
  using Read = std::pair<at::Tensor, Result<void>>;

  void begin() {
    if (next_ >= tensors_.size()) return;
    const auto& named = tensors_[std::exchange(next_, next_ + stride_)];
    const bool is_wanted = failure_.ok();
    under_way_ = std::async(std::launch::async, [this, &named, is_wanted]() -> Read {
      const at::NoGradGuard no_grad;
      const bool is_in_place = named.parts.empty() && named.tensor.is_cpu();
      const auto tensor = is_in_place ? named.tensor.detach() : torch::empty({elements_of(named)});
      if (!is_wanted) return {tensor, {}};
      return {tensor, read_({.name = named.name,
                             .shape = named.shape,
                             .floats = {tensor.mutable_data_ptr<float>(),
                                        static_cast<std::size_t>(tensor.numel())}})};
    });
  }

  const std::vector<NamedTensor>& tensors_;
  const TensorReader& read_;
  const std::size_t stride_;
  std::size_t next_ = 0;
  std::future<Read> under_way_;
  Result<void> failure_;
};

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
                  const TensorReader& read, int readers) {
  const at::NoGradGuard no_grad;
  ReadAhead own(tensors, read, communicator.rank(), readers);
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto& named = tensors[index];
    const int root = static_cast<int>(index % static_cast<std::size_t>(readers));
    const bool is_root = communicator.rank() == root;
    const at::Tensor whole = is_root ? own.next() : at::Tensor();
    if (!named.parts.empty()) {
      hand_out(communicator, named, whole, root);
      continue;
    }
    auto place = named.tensor.detach();
    if (is_root && !place.is_alias_of(whole)) place.copy_(whole.view(place.sizes()));
    if (communicator.world_size() > 1) communicator.broadcast(place, root);
  }
  return own.failure();
}

}  // namespace tj::trainer
