#include "trainer/train/zero/zero_unit.h"

#include <torch/types.h>

#include <algorithm>
#include <functional>

#include "trainer/comm/tree_all_reduce.h"
#include "trainer/train/gradients.h"

namespace tj::trainer {
namespace {

std::vector<std::int64_t> sizes_of(const std::vector<ZeroUnit::Member>& members) {
  std::vector<std::int64_t> sizes;
  for (const auto& member : members) sizes.push_back(member.size);
  return sizes;
}

// Memory comes and goes under the tensors that look at it: autograd has kept windows on the
// weights for backward, and finds their values there again (as PyTorch's FSDP does it).
bool has_memory(const at::Tensor& tensor) { return tensor.storage().nbytes() > 0; }

void set_memory(const at::Tensor& tensor, std::size_t bytes) {
  auto* const storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr(storage->allocator()->allocate(bytes));
  storage->set_nbytes(bytes);
}

void allocate(const at::Tensor& tensor) { set_memory(tensor, tensor.nbytes()); }
void free_memory(const at::Tensor& tensor) { set_memory(tensor, 0); }

/// A window that counts its own versions: what is written elsewhere in the memory does not make
/// autograd think that this tensor has changed.
at::Tensor window(const at::Tensor& flat, std::int64_t begin, at::IntArrayRef shape) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * shape[axis];
  return at::empty({0}, flat.options()).set_(flat.storage(), begin, shape, strides);
}

at::Tensor slice(const at::Tensor& flat, int rank, std::int64_t size) {
  return window(flat, rank * size, {size});
}

}  // namespace

ZeroUnit::ZeroUnit(std::vector<Member> members, bool is_whole, const ZeroKind& kind,
                   ShardRanks& ranks)
    : members_(std::move(members)),
      layout_(sizes_of(members_), ranks.place().group_size),
      is_whole_(is_whole),
      kind_(kind),
      ranks_(&ranks),
      moment_index_(members_.size()),
      has_arrived_(members_.size()) {
  const auto options = at::TensorOptions().device(kind.device);
  const auto shard_size = layout_.shard_size();
  whole_ = torch::empty({layout_.size()}, options.dtype(kind.weights));
  for (std::size_t member = 0; member < members_.size(); ++member)
    parameters_.push_back(
        window(whole_, layout_.offset(member), members_[member].shape).requires_grad_(true));
  if (is_whole) {
    whole_.zero_();
  } else {
    free_memory(whole_);
  }
  shard_ = is_whole ? slice(whole_, shard(), shard_size)
                    : torch::zeros({shard_size}, options.dtype(kind.weights));
  master_ =
      kind.weights == at::kFloat ? shard_ : torch::zeros({shard_size}, options.dtype(at::kFloat));
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const auto part = layout_.part(member, shard());
    const auto begin = layout_.offset(member) + part.begin - shard() * shard_size;
    pieces_.push_back(part.size() == 0
                          ? at::Tensor()
                          : window(master_, master_.storage_offset() + begin, {part.size()}));
  }
}

ZeroUnit::ZeroUnit(ZeroUnit&&) noexcept = default;
ZeroUnit::~ZeroUnit() = default;

void ZeroUnit::place(std::size_t member, const at::Tensor& initial) {
  const at::NoGradGuard no_grad;
  const auto flat = initial.detach().reshape({-1});
  const auto part = layout_.part(member, shard());
  if (part.size() > 0) pieces_[member].copy_(flat.narrow(0, part.begin, part.size()));
  if (auto own = average(member); own.defined()) own.copy_(pieces_[member]);
  if (is_whole_) window(whole_, layout_.offset(member), {members_[member].size}).copy_(flat);
}

void ZeroUnit::make_optimizer(const std::vector<UpdateRule>& rules, bool has_averages) {
  std::vector<at::Tensor> parts;
  std::vector<UpdateRule> rules_of_parts;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!pieces_[member].defined()) continue;
    moment_index_[member] = parts.size();
    parts.push_back(pieces_[member]);
    rules_of_parts.push_back(rules[member]);
    if (has_averages) averages_.push_back(pieces_[member].clone());
  }
  optimizer_ = std::make_unique<AdamW>(parts, rules_of_parts);
}

void ZeroUnit::begin_gather() {
  if (!has_memory(whole_)) allocate(whole_);
  gathering_ = ranks_->sharers().all_gather(shard_, whole_);
}

void ZeroUnit::wait_gathered() {
  if (gathering_) gathering_->wait();
  gathering_.reset();
}

void ZeroUnit::release() {
  wait_gathered();
  free_memory(whole_);
}

bool ZeroUnit::is_gathered() const { return has_memory(whole_); }

void ZeroUnit::keep_gradients_in(const at::Tensor& place) {
  whole_gradient_ = place;
  gradient_ = window(place, place.storage_offset() + shard() * layout_.shard_size(),
                     {layout_.shard_size()});
  is_placed_ = true;
}

at::Tensor ZeroUnit::whole_gradient(std::size_t member) const {
  return window(whole_gradient_, whole_gradient_.storage_offset() + layout_.offset(member),
                members_[member].shape);
}

void ZeroUnit::allocate_whole_gradient() {
  const at::NoGradGuard no_grad;
  if (whole_gradient_.defined()) {
    if (!has_memory(whole_gradient_)) allocate(whole_gradient_);
  } else {
    // Where passes are added up before the sum over ranks, they are so in the type of the sum.
    const auto type = kind_.stage == 1 ? kind_.gradients : kind_.weights;
    whole_gradient_ = torch::empty({layout_.size()}, whole_.options().dtype(type));
    if (kind_.stage == 1) gradient_ = slice(whole_gradient_, shard(), layout_.shard_size());
  }
  // What no tensor fills must not look like a gradient.
  std::int64_t filled = 0;
  for (std::size_t member = 0; member < members_.size(); ++member) {
    const auto begin = layout_.offset(member);
    if (begin > filled) whole_gradient_.narrow(0, filled, begin - filled).zero_();
    filled = begin + members_[member].size;
  }
  whole_gradient_.narrow(0, filled, layout_.size() - filled).zero_();
}

void ZeroUnit::take_gradient(std::size_t member) {
  const auto& parameter = parameters_[member];
  TORCH_CHECK(!is_reduced_, "a gradient after the reduction of its unit");
  const at::NoGradGuard no_grad;
  if (std::ranges::none_of(has_arrived_, std::identity())) allocate_whole_gradient();
  auto place = whole_gradient(member);
  if (has_arrived_[member]) {
    place.add_(parameter.grad());
  } else {
    place.copy_(parameter.grad());
  }
  has_arrived_[member] = true;
  parameter.mutable_grad().reset();
}

void ZeroUnit::begin_reduce(bool is_last_pass) {
  const at::NoGradGuard no_grad;
  if (!is_placed_) {
    if (std::ranges::none_of(has_arrived_, std::identity())) allocate_whole_gradient();
    for (std::size_t member = 0; member < members_.size(); ++member)
      if (!has_arrived_[member]) whole_gradient(member).zero_();
  }
  is_reduced_ = true;
  if (!gradient_.defined())
    gradient_ = torch::empty({layout_.shard_size()}, whole_.options().dtype(kind_.gradients));
  pass_sum_ = has_sum_ && !keeps_whole_gradient() ? torch::empty_like(gradient_) : gradient_;
  will_cross_ = is_last_pass && ranks_->holders() != nullptr;
  reducing_ = ranks_->sharers().reduce_scatter(whole_gradient_, pass_sum_);
}

void ZeroUnit::go_on_reducing() {
  if (!reducing_) return;
  reducing_->wait();
  reducing_.reset();
  if (!pass_sum_.is_same(gradient_)) gradient_.add_(pass_sum_);
  pass_sum_.reset();
  has_sum_ = true;
  if (!keeps_whole_gradient()) {
    free_memory(whole_gradient_);
    has_arrived_.assign(members_.size(), false);
  }
  if (will_cross_) begin_crossing();
}

/// The ranks of a group are a subtree of the tree over all ranks, and the groups are the rest.
void ZeroUnit::begin_crossing() {
  if (kind_.is_deterministic) {
    tree_all_reduce(*ranks_->holders(), gradient_);
  } else {
    crossing_ = ranks_->holders()->begin_all_reduce_sum(gradient_);
  }
}

void ZeroUnit::wait_reduced() {
  go_on_reducing();
  if (crossing_) crossing_->wait();
  crossing_.reset();
}

/// What this rank has of the members' weights, in the order of the optimizer.
std::vector<at::Tensor> ZeroUnit::parts() const {
  std::vector<at::Tensor> parts;
  for (const auto& piece : pieces_)
    if (piece.defined()) parts.push_back(piece);
  return parts;
}

void ZeroUnit::update(const ShardUpdate& how) {
  const at::NoGradGuard no_grad;
  auto gradient = gradient_.to(at::kFloat);
  if (how.factor.defined()) gradient.mul_(how.factor);
  const auto shard_begin = shard() * layout_.shard_size();
  for (std::size_t member = 0; member < members_.size(); ++member) {
    if (!pieces_[member].defined()) continue;
    const auto part = layout_.part(member, shard());
    pieces_[member].mutable_grad() =
        gradient.narrow(0, layout_.offset(member) + part.begin - shard_begin, part.size());
  }
  optimizer_->step(how.lr, how.skip);
  for (const auto& part : parts()) part.mutable_grad().reset();
  refresh();
}

void ZeroUnit::move_averages(double decay) {
  if (!averages_.empty()) update_averages(averages_, parts(), decay);
}

void ZeroUnit::refresh() {
  const at::NoGradGuard no_grad;
  if (!shard_.is_same(master_)) shard_.copy_(master_);
  if (is_whole_) begin_gather();
}

void ZeroUnit::clear() {
  has_sum_ = false;
  has_arrived_.assign(members_.size(), false);
}

namespace {

at::Tensor at_index(const std::vector<at::Tensor>& tensors,
                    const std::optional<std::size_t>& index) {
  return index ? tensors[*index] : at::Tensor();
}

}  // namespace

at::Tensor ZeroUnit::whole_weights(std::size_t member) const {
  const bool is_there = is_whole_ && kind_.weights == at::kFloat;
  return is_there ? parameters_[member].detach() : at::Tensor();
}
at::Tensor ZeroUnit::first_moment(std::size_t member) const {
  return at_index(optimizer_->first_moments(), moment_index_[member]);
}
at::Tensor ZeroUnit::second_moment(std::size_t member) const {
  return at_index(optimizer_->second_moments(), moment_index_[member]);
}
at::Tensor ZeroUnit::average(std::size_t member) const {
  return averages_.empty() ? at::Tensor() : at_index(averages_, moment_index_[member]);
}

std::vector<at::Tensor> ZeroUnit::held() const {
  std::vector<at::Tensor> all{whole_, shard_, master_, whole_gradient_, gradient_};
  for (const auto* const list :
       {&optimizer_->first_moments(), &optimizer_->second_moments(), &averages_})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace tj::trainer
