#include "trainer/train/zero/zero.h"

#include <torch/types.h>

#include <cmath>
#include <set>

#include "trainer/comm/agreement.h"
#include "trainer/train/gradients.h"

namespace tj::trainer {
namespace {

/// So many reductions may be under way; each has its buffers.
constexpr std::size_t kReducingMax = 2;

struct TakeGradient final : torch::autograd::PostAccumulateGradHook {
  TakeGradient(ZeroUnit& of, std::size_t index) : unit(of), member(index) {}
  void operator()(const at::Tensor&) override { unit.take_gradient(member); }
  ZeroUnit& unit;
  std::size_t member;
};

}  // namespace

Zero::Zero(ZeroInputs inputs, Communicator& communicator)
    : inputs_(std::move(inputs)),
      comm_(communicator),
      ranks_(communicator, inputs_.options.group_size),
      homes_(inputs_.tensors.size()) {
  const auto is_frozen = [&](std::size_t tensor) {
    return inputs_.tensors[tensor].kind != TensorKind::trained;
  };
  std::vector<std::int64_t> sizes;
  for (std::size_t tensor = 0; tensor < inputs_.tensors.size(); ++tensor)
    sizes.push_back(is_frozen(tensor) ? 0 : element_count(inputs_.tensors[tensor]));
  const auto plans = plan_units(sizes, inputs_.blocks, inputs_.options);
  steps_ = plan_steps(plans, inputs_.blocks, inputs_.options);
  units_.reserve(plans.size());  // hooks point at them
  for (const auto& plan : plans) {
    std::vector<ZeroUnit::Member> members;
    std::vector<UpdateRule> rules;
    for (const auto tensor : plan.tensors) {
      homes_[tensor] = {.unit = units_.size(), .member = members.size()};
      members.push_back(
          {.tensor = tensor, .shape = inputs_.tensors[tensor].shape, .size = sizes[tensor]});
      rules.push_back(inputs_.rules[tensor]);
    }
    units_.emplace_back(std::move(members), plan.is_whole, inputs_.kind, ranks_);
    units_.back().make_optimizer(rules, inputs_.has_averages);
  }
}

Zero::~Zero() = default;

at::Tensor Zero::place(std::size_t tensor, const at::Tensor& initial) {
  if (!homes_[tensor]) {
    frozen_.push_back(initial.detach());
    return frozen_.back();
  }
  auto& unit = units_[homes_[tensor]->unit];
  unit.place(homes_[tensor]->member, initial);
  return unit.parameter(homes_[tensor]->member);
}

void Zero::begin() {
  for (auto& unit : units_) unit.refresh();
  for (auto& unit : units_) unit.wait_gathered();
  if (inputs_.kind.is_deterministic) {
    keep_gradients_in_tree();
  } else {
    take_gradients_by_hooks();
  }
}

void Zero::keep_gradients_in_tree() {
  std::int64_t size = 0;
  for (const auto& unit : units_) size += unit.layout().size();
  const auto buffer =
      torch::zeros({size}, at::TensorOptions().dtype(at::kFloat).device(inputs_.kind.device));
  std::int64_t begin = 0;
  for (auto& unit : units_) {
    unit.keep_gradients_in(buffer.narrow(0, begin, unit.layout().size()));
    begin += unit.layout().size();
    for (std::size_t member = 0; member < unit.members().size(); ++member)
      unit.parameter(member).mutable_grad() = unit.whole_gradient(member);
  }
  tree_.emplace(buffer);
}

void Zero::take_gradients_by_hooks() {
  for (auto& unit : units_)
    for (std::size_t member = 0; member < unit.members().size(); ++member)
      torch::autograd::impl::set_post_acc_grad_hooks(unit.parameter(member),
                                                     std::make_unique<TakeGradient>(unit, member));
}

void Zero::begin_pass(bool is_last) {
  TORCH_CHECK(next_step_ == 0, "a pass ends before the next begins");
  is_last_pass_ = is_last;
}

void Zero::before(std::size_t block) { enter(block); }

void Zero::after(std::size_t block, const at::Tensor& output) {
  if (!output.requires_grad()) return;
  const std::size_t backward = steps_.size() - 1 - block;
  output.register_hook([this, backward](const at::Tensor&) { enter(backward); });
}

void Zero::hold() {
  TORCH_CHECK(!at::GradMode::is_enabled(), "a pass with a backward lets its weights go");
  is_holding_ = true;
}

/// Also does what a block that was left out would have: the other ranks may not have left it out.
void Zero::enter(std::size_t step) {
  TORCH_CHECK(next_step_ <= step || is_holding_, "blocks compute in their order, once in a pass");
  while (next_step_ <= step) {
    if (next_step_ > 0) leave(next_step_ - 1);
    for (const auto unit : steps_[next_step_].gather)
      if (!units_[unit].is_gathered()) units_[unit].begin_gather();
    ++next_step_;
  }
  for (const auto unit : steps_[step].need) units_[unit].wait_gathered();
}

void Zero::leave(std::size_t step) {
  if (is_holding_) return;
  for (const auto unit : steps_[step].release) units_[unit].release();
  const bool sums_each_pass = inputs_.options.stage >= 2;
  if (inputs_.kind.is_deterministic || !(sums_each_pass || is_last_pass_)) return;
  for (const auto unit : steps_[step].reduce) reduce(unit);
}

void Zero::reduce(std::size_t unit) {
  while (reducing_.size() >= kReducingMax) {
    units_[reducing_.front()].wait_reduced();
    reducing_.pop_front();
  }
  if (ranks_.holders() != nullptr)
    for (const auto other : reducing_) units_[other].go_on_reducing();
  units_[unit].begin_reduce(is_last_pass_ || tree_);
  reducing_.push_back(unit);
}

void Zero::end_pass() {
  if (next_step_ < steps_.size()) enter(steps_.size() - 1);
  leave(steps_.size() - 1);
  next_step_ = 0;
  while (!reducing_.empty()) {
    units_[reducing_.front()].wait_reduced();
    reducing_.pop_front();
  }
  for (auto& unit : units_) unit.end_pass();
}

void Zero::end_forward() {
  next_step_ = 0;
  is_holding_ = false;
  release_all();
}

void Zero::release_all() {
  for (const auto& step : steps_)
    for (const auto unit : step.need) units_[unit].release();
}

void Zero::finish_gradients() {
  release_all();  // of the last pass: the update makes other weights
  if (!tree_) return;
  tree_->sum_own();
  for (std::size_t unit = 0; unit < units_.size(); ++unit) reduce(unit);
  for (; !reducing_.empty(); reducing_.pop_front()) units_[reducing_.front()].wait_reduced();
  for (auto& unit : units_) unit.end_pass();
}

std::vector<at::Tensor> Zero::gradients() {
  std::vector<at::Tensor> all;
  for (auto& unit : units_) all.push_back(unit.gradient());
  return all;
}

at::Tensor Zero::unscale(double scale) {
  auto is_infinite = unscale_gradients(gradients(), scale);
  comm_.all_reduce_sum(is_infinite);
  return is_infinite;
}

at::Tensor Zero::clip(double norm_max) {
  const at::NoGradGuard no_grad;
  auto norm = inputs_.kind.is_deterministic ? exact_norm() : norm_of_shards();
  if (norm_max > 0) clip_factor_ = clip_factor(norm, norm_max);
  return norm;
}

at::Tensor Zero::exact_norm() {
  auto words = exact_squares(gradients()).words();
  auto tensor =
      torch::from_blob(words.data(), {static_cast<std::int64_t>(words.size())}, torch::kInt64);
  comm_.all_reduce_sum(tensor);
  const int copies = ranks_.place().group_count();  // a power of two: no bit is lost
  return at::scalar_tensor(std::sqrt(ExactSquares::from_words(words).sum() / copies),
                           at::TensorOptions().dtype(at::kDouble).device(inputs_.kind.device));
}

at::Tensor Zero::norm_of_shards() {
  std::vector<at::Tensor> norms;
  for (const auto& gradient : gradients())
    norms.push_back(at::linalg_vector_norm(gradient.to(at::kFloat), 2, {}, false, at::kDouble));
  // Added one after the other: the bits don't depend on how many a kernel adds at once.
  auto squares = at::stack(norms).square().cumsum(0).select(0, -1).clone();
  // Over all ranks, so that the groups clip alike whatever their processors round.
  comm_.all_reduce_sum(squares);
  return squares.div_(ranks_.place().group_count()).sqrt();
}

void Zero::update(double lr, const at::Tensor& skip) {
  for (auto& unit : units_) unit.update({.lr = lr, .factor = clip_factor_, .skip = skip});
  for (auto& unit : units_) unit.wait_gathered();
}

void Zero::move_averages(double decay) {
  for (auto& unit : units_) unit.move_averages(decay);
}

void Zero::clear() {
  clip_factor_.reset();
  for (auto& unit : units_) unit.clear();
}

std::int64_t Zero::step_count() const { return units_.front().optimizer().step_count(); }

void Zero::set_step_count(std::int64_t steps) {
  for (auto& unit : units_) unit.optimizer().set_step_count(steps);
}

void Zero::append(std::vector<NamedTensor>& list, const std::string& prefix,
                  const std::function<at::Tensor(const ZeroUnit&, std::size_t)>& part) const {
  for (std::size_t tensor = 0; tensor < homes_.size(); ++tensor) {
    if (!homes_[tensor]) continue;
    const auto& unit = units_[homes_[tensor]->unit];
    const auto member = homes_[tensor]->member;
    NamedTensor named{.name = prefix + inputs_.tensors[tensor].name,
                      .tensor = part(unit, member),
                      .shape = inputs_.tensors[tensor].shape,
                      .parts = {},
                      .ranks_of_a_copy = ranks_.place().group_size};
    for (int rank = 0; rank < comm_.world_size(); ++rank)
      named.parts.push_back(unit.layout().part(member, rank % ranks_.place().group_size));
    list.push_back(std::move(named));
  }
}

StateTensors Zero::state() const {
  StateTensors state;
  const auto of = [](auto getter) {
    return [getter](const ZeroUnit& unit, std::size_t member) -> at::Tensor {
      return (unit.*getter)(member);
    };
  };
  append(state.model, "", of(&ZeroUnit::weights));
  for (std::size_t tensor = 0, index = 0; tensor < homes_.size(); ++tensor)
    if (homes_[tensor])
      state.model[index++].whole =
          units_[homes_[tensor]->unit].whole_weights(homes_[tensor]->member);
  append(state.optimizer, "exp_avg.", of(&ZeroUnit::first_moment));
  append(state.optimizer, "exp_avg_sq.", of(&ZeroUnit::second_moment));
  if (inputs_.has_averages) append(state.ema, "", of(&ZeroUnit::average));
  return state;
}

std::int64_t Zero::held_bytes() const {
  std::vector<at::Tensor> all = frozen_;
  for (const auto& unit : units_) {
    const auto held = unit.held();
    all.insert(all.end(), held.begin(), held.end());
  }
  return distinct_bytes(all);
}

std::int64_t distinct_bytes(std::span<const at::Tensor> tensors) {
  std::set<const void*> seen;
  std::int64_t bytes = 0;
  for (const auto& tensor : tensors) {
    if (!tensor.defined() || !seen.insert(tensor.storage().unsafeGetStorageImpl()).second) continue;
    bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
  }
  return bytes;
}

}  // namespace tj::trainer
