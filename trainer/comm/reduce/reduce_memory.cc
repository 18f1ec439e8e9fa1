#include "trainer/comm/reduce/reduce_memory.h"

#include <torch/types.h>

#include <algorithm>

#include "trainer/comm/reduce/low_rank.h"

namespace tj::trainer {
namespace {

/// Of any matrix the memory of a tensor makes: its outermost dimension and all others.
std::int64_t rows_of(const at::Tensor& parameter) {
  if (parameter.dim() < 2) return 1;
  const auto strides = parameter.strides();
  return parameter.size(std::ranges::max_element(strides) - strides.begin());
}

}  // namespace

ReduceMemory::ReduceMemory(const std::vector<at::Tensor>& parameters,
                           std::span<const std::string> names, const ReduceOptions& options) {
  const at::NoGradGuard no_grad;
  const auto rank = static_cast<std::size_t>(options.rank);
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    const auto& parameter = parameters[index];
    TORCH_CHECK(parameter.is_non_overlapping_and_dense() && parameter.scalar_type() == at::kFloat,
                "compressed gradients are dense and of float32; ", names[index], " is not");
    Entry entry{.name = names[index],
                .index = index,
                .rows = rows_of(parameter),
                .seed = options.seed * parameters.size() + index};
    entry.columns = entry.rows > 0 ? parameter.numel() / entry.rows : 0;
    if (has_feedback(options.codec)) entry.error = torch::zeros({parameter.numel()}, at::kFloat);
    const bool has_factors = options.codec == Codec::powersgd &&
                             is_worth_factors(static_cast<std::size_t>(entry.rows),
                                              static_cast<std::size_t>(entry.columns), rank);
    if (has_factors) entry.factor = torch::zeros({options.rank, entry.columns}, at::kFloat);
    index_[parameter.unsafeGetTensorImpl()] = index;
    entries_.push_back(std::move(entry));
  }
}

ReduceMemory::Entry& ReduceMemory::of(const at::Tensor& parameter) {
  return entries_[index_.at(parameter.unsafeGetTensorImpl())];
}

void ReduceMemory::rescale(double factor) {
  const at::NoGradGuard no_grad;
  for (auto& entry : entries_)
    if (entry.error.defined()) entry.error.mul_(factor);
}

void ReduceMemory::pay(const std::vector<at::Tensor>& parameters) {
  const at::NoGradGuard no_grad;
  is_to_be_paid = false;
  for (const auto& parameter : parameters) {
    auto& error = of(parameter).error;
    if (!error.defined()) continue;
    parameter.grad().add_(
        error.as_strided(parameter.sizes(), parameter.strides()).to(parameter.device()));
    error.zero_();
  }
}

std::int64_t ReduceMemory::held_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& entry : entries_)
    for (const auto* const tensor : {&entry.error, &entry.factor})
      if (tensor->defined()) bytes += static_cast<std::int64_t>(tensor->nbytes());
  return bytes;
}

}  // namespace tj::trainer
