#include "trainer/checkpoint/training_state.h"

#include <torch/types.h>

#include <cstring>
#include <future>
#include <string_view>
#include <utility>

#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/slice_name.h"

namespace tj::trainer {
namespace {

/// Not through torch where it can be helped: a copy of its own would start a second team of OpenMP
/// threads beside the one that trains.
void copy_out(const at::Tensor& source, std::span<std::byte> bytes, DeviceToHost* copies) {
  if (source.is_cpu()) {
    std::memcpy(bytes.data(), source.data_ptr(), bytes.size());
  } else {
    TORCH_CHECK(copies != nullptr, "tensors of a GPU are copied by its own stream");
    copies->copy(source, bytes);
  }
}

at::Tensor floats_at(std::byte* bytes, const ElementRange& part) {
  return torch::from_blob(bytes + static_cast<std::size_t>(part.begin) * sizeof(float),
                          {part.size()}, torch::kFloat32);
}

/// Ranks from `first` on that have all of a tensor in parts together.
struct CopyRanks {
  int first = 0;
  int count = 0;
  bool has(int rank) const { return first <= rank && rank < first + count; }
};

/// The copy that `rank` has a part of.
CopyRanks copy_with(int rank, const NamedTensor& named) {
  const int count = named.ranks_of_a_copy.value_or(static_cast<int>(named.parts.size()));
  return {.first = rank / count * count, .count = count};
}

/// Of a tensor in parts: the writer receives, the others of its copy send.
StateTensor in_parts(const NamedTensor& named, Communicator& communicator, DeviceToHost* copies) {
  const auto own = named.tensor.defined() ? named.tensor.detach() : torch::empty({0});
  const auto copy = copy_with(communicator.rank(), named);
  const auto gather = [own, parts = named.parts, copy, &communicator,
                       copies](std::span<std::byte> bytes) {
    for (int rank = copy.first; copy.has(rank); ++rank) {
      const auto& part = parts[static_cast<std::size_t>(rank)];
      if (part.size() == 0) continue;
      auto place = floats_at(bytes.data(), part);
      if (rank == communicator.rank()) {
        copy_out(own, {static_cast<std::byte*>(place.data_ptr()), place.nbytes()}, copies);
      } else {
        communicator.exchange(torch::empty({0}), place, rank);
      }
    }
  };
  const auto send = [own, copy, &communicator](int writer) {
    auto none = torch::empty({0});
    if (copy.has(writer) && own.numel() > 0) communicator.exchange(own, none, writer);
  };
  return {.name = named.name, .shape = named.shape, .copy_to = gather, .send_to = send};
}

/// On this rank, by what a GPU needs.
struct Copying {
  int own_rank = 0;
  DeviceToHost* copies = nullptr;
};

std::function<void(std::span<std::byte>)> copy_of(const at::Tensor& tensor, DeviceToHost* copies) {
  return [source = tensor.detach(), copies](std::span<std::byte> bytes) {
    copy_out(source, bytes, copies);
  };
}

/// A slice for each rank of `copy` that has one; one that has it all has the tensor.
void append_slices(StateGroup& group, const NamedTensor& named, const CopyRanks& copy,
                   const Copying& copying) {
  for (int rank = copy.first; copy.has(rank); ++rank) {
    const auto& part = named.parts[static_cast<std::size_t>(rank)];
    if (part.size() == 0) continue;
    const bool is_all = part.size() == element_count(named.shape);
    group.tensors.push_back(
        {.name = is_all ? named.name : slice_name(named.name, part),
         .shape = is_all ? named.shape : std::vector{part.size()},
         .copy_to = rank == copying.own_rank ? copy_of(named.tensor, copying.copies) : nullptr,
         .holder = rank});
  }
}

/// What a checkpoint calls it.
const char* dtype_of(const NamedTensor& named) {
  const auto& tensor = named.tensor;
  if (!tensor.defined()) return kFloat32;
  const auto type = tensor.scalar_type();
  TORCH_CHECK(tensor.is_contiguous() && (type == at::kFloat || type == at::kByte),
              "a checkpoint holds plain tensors of float32 or bytes; ", named.name, " is none");
  return type == at::kByte ? kUint8 : kFloat32;
}

/// As the writer has it, if need be by what the others send.
void append_gathered(StateGroup& group, const NamedTensor& named, Communicator& communicator,
                     DeviceToHost* copies) {
  const auto* const dtype = dtype_of(named);
  const auto& whole = named.parts.empty() ? named.tensor : named.whole;
  if (whole.defined()) {
    group.tensors.push_back({.name = named.name,
                             .shape = named.shape,
                             .copy_to = copy_of(whole, copies),
                             .dtype = dtype});
  } else {
    group.tensors.push_back(in_parts(named, communicator, copies));
  }
}

StateGroup group_of(const std::string& stem, const std::vector<NamedTensor>& tensors,
                    Communicator& communicator, DeviceToHost* copies) {
  StateGroup group{.stem = stem, .tensors = {}};
  for (const auto& named : tensors) append_gathered(group, named, communicator, copies);
  return group;
}

/// Where there are several copies of a tensor one of them is written, of the next tensor the next
/// one: all ranks have as much to do.
StateGroup group_in_slices(const std::string& stem, const std::vector<NamedTensor>& tensors,
                           const Copying& copying) {
  StateGroup group{.stem = stem, .tensors = {}};
  int first = 0;
  for (const auto& named : tensors) {
    TORCH_CHECK(std::string_view(dtype_of(named)) == kFloat32, "slices are of float32");
    const auto copy = copy_with(first % static_cast<int>(named.parts.size()), named);
    append_slices(group, named, copy, copying);
    first = copy.first + copy.count;
  }
  return group;
}

/// Errors are of one rank each, factors of all.
StateGroup reduction_group(const std::vector<NamedTensor>& tensors, Communicator& communicator,
                           bool all_write, DeviceToHost* copies) {
  StateGroup group{.stem = kReductionStem, .tensors = {}};
  for (const auto& named : tensors) {
    if (all_write && !named.parts.empty()) {
      append_slices(group, named, copy_with(0, named), {communicator.rank(), copies});
    } else {
      append_gathered(group, named, communicator, copies);
    }
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

/// What one rank reads of all tensors, in their order.
struct ToRead {
  const NamedTensor& named;
  ElementRange range;
};

std::vector<ToRead> reads_of(int rank, const std::vector<NamedTensor>& tensors, int readers,
                             bool all_read) {
  std::vector<ToRead> reads;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto& named = tensors[index];
    if (all_read && !named.parts.empty()) {
      const auto& part = named.parts[static_cast<std::size_t>(rank)];
      if (part.size() > 0) reads.push_back({named, part});
    } else if (static_cast<int>(index % static_cast<std::size_t>(readers)) == rank) {
      reads.push_back({named, {.begin = 0, .end = element_count(named.shape)}});
    }
  }
  return reads;
}

/// Reads each while the one before is on its way to the others.
class ReadAhead {
 public:
  ReadAhead(std::vector<ToRead> reads, const TensorReader& read)
      : reads_(std::move(reads)), read_(read) {
    begin();
  }

  /// Float32 and flat, on the host, in place where that is possible; after a failure, of which the
  /// others do not know, anything.
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
    if (next_ >= reads_.size()) return;
    const auto& [named, range] = reads_[next_++];
    const bool is_wanted = failure_.ok();
    under_way_ = std::async(std::launch::async, [&, is_wanted]() -> Read {
      const at::NoGradGuard no_grad;
      const auto& place = named.tensor;
      const bool is_in_place = place.defined() && place.is_cpu() && place.numel() == range.size();
      const auto tensor = is_in_place ? place.detach().view({-1}) : torch::empty({range.size()});
      if (!is_wanted) return {tensor, {}};
      return {tensor, read_({.name = named.name,
                             .shape = named.shape,
                             .floats = {tensor.mutable_data_ptr<float>(),
                                        static_cast<std::size_t>(tensor.numel())},
                             .begin = range.begin})};
    });
  }

  const std::vector<ToRead> reads_;
  const TensorReader& read_;
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

void append_own(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                const std::vector<at::Tensor>& tensors, const std::string& prefix,
                const Communicator& communicator) {
  const int ranks = communicator.world_size();
  for (std::size_t index = 0; index < names.size(); ++index) {
    const auto elements = tensors[index].numel();
    NamedTensor named{.name = prefix + names[index],
                      .tensor = tensors[index].detach().view({-1}),
                      .shape = {ranks * elements}};
    for (int rank = 0; rank < ranks; ++rank)
      named.parts.push_back({.begin = rank * elements, .end = (rank + 1) * elements});
    list.push_back(std::move(named));
  }
}

void append_of_first(std::vector<NamedTensor>& list, const std::vector<std::string>& names,
                     const std::vector<at::Tensor>& tensors, const std::string& prefix,
                     const Communicator& communicator) {
  const auto ranks = static_cast<std::size_t>(communicator.world_size());
  for (std::size_t index = 0; index < names.size(); ++index) {
    const auto& own = tensors[index];
    NamedTensor named{.name = prefix + names[index],
                      .tensor = {},
                      .shape = own.sizes().vec(),
                      .parts = std::vector<ElementRange>(ranks),
                      .whole = own};
    named.parts[0] = {.begin = 0, .end = own.numel()};
    if (communicator.rank() == 0) named.tensor = own.detach().view({-1});
    list.push_back(std::move(named));
  }
}

std::vector<StateGroup> state_groups(const StateTensors& state, Communicator& communicator,
                                     bool all_write, DeviceToHost* copies) {
  const bool is_sharded = !state.optimizer.empty() && !state.optimizer.front().parts.empty();
  std::vector<StateGroup> groups{
      group_of(kModelStem, state.model, communicator, copies),
      all_write && is_sharded
          ? group_in_slices(kOptimizerStem, state.optimizer, {communicator.rank(), copies})
          : group_of(kOptimizerStem, state.optimizer, communicator, copies)};
  const std::pair<const char*, const std::vector<NamedTensor>*> others[] = {
      {kEmaStem, &state.ema},
      {kTrainingStem, &state.training},
      {kMemoryStem, &state.memory},
      {kSyncStem, &state.sync}};
  for (const auto& [stem, tensors] : others)
    if (!tensors->empty()) groups.push_back(group_of(stem, *tensors, communicator, copies));
  const std::pair<const char*, const std::vector<NamedTensor>*> of_ranks[] = {
      {kRanksStem, &state.ranks}, {kRoundStem, &state.round}};
  for (const auto& [stem, tensors] : of_ranks) {
    if (tensors->empty()) continue;
    groups.push_back(all_write ? group_in_slices(stem, *tensors, {communicator.rank(), copies})
                               : group_of(stem, *tensors, communicator, copies));
  }
  if (!state.reduction.empty())
    groups.push_back(reduction_group(state.reduction, communicator, all_write, copies));
  return groups;
}

Result<void> fill(Communicator& communicator, const std::vector<NamedTensor>& tensors,
                  const TensorReader& read, int readers) {
  const at::NoGradGuard no_grad;
  const int rank = communicator.rank();
  const bool all_read = readers == communicator.world_size();
  ReadAhead own(reads_of(rank, tensors, readers, all_read), read);
  const auto take_in = [](const at::Tensor& place, const at::Tensor& flat) {
    if (!place.is_alias_of(flat)) place.copy_(flat.view(place.sizes()));
  };
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto& named = tensors[index];
    const auto place = named.tensor.defined() ? named.tensor.detach() : at::Tensor();
    if (all_read && !named.parts.empty()) {
      if (named.parts[static_cast<std::size_t>(rank)].size() > 0) take_in(place, own.next());
      continue;
    }
    const int root = static_cast<int>(index % static_cast<std::size_t>(readers));
    const at::Tensor whole = rank == root ? own.next() : at::Tensor();
    if (!named.parts.empty()) {
      hand_out(communicator, named, whole, root);
      continue;
    }
    if (rank == root) take_in(place, whole);
    auto shared = place;
    if (communicator.world_size() > 1) communicator.broadcast(shared, root);
  }
  return own.failure();
}

namespace {

Result<void> read_bytes(const NamedTensor& named, const std::filesystem::path& file) {
  const auto opened = SafetensorsFile::open(file);
  if (!opened) return opened.error();
  const auto* const stored = opened->find(named.name);
  const bool fits = stored != nullptr && stored->dtype == kUint8 && stored->shape == named.shape;
  if (!fits)
    return Error{
        .code = Code::invalid,
        .message = "has no bytes " + shape_text(named.shape) + " of the name " + named.name,
        .subject = file.filename().string()};
  const auto bytes = torch::empty(named.shape, at::kByte);
  const auto read = opened->data().read(
      stored->begin, {bytes.data_ptr<std::uint8_t>(), static_cast<std::size_t>(stored->bytes)});
  if (!read) return read;
  auto place = named.tensor;
  place.copy_(bytes);
  return {};
}

}  // namespace

Result<void> fill_bytes(Communicator& communicator, const NamedTensor& named,
                        const std::filesystem::path& file) {
  const at::NoGradGuard no_grad;
  Result<void> read;
  if (communicator.rank() == 0) read = read_bytes(named, file);
  auto shared = named.tensor;
  if (communicator.world_size() > 1) communicator.broadcast(shared, 0);
  return read;
}

}  // namespace tj::trainer
