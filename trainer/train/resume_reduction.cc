#include "trainer/train/resume_reduction.h"

#include <torch/types.h>

#include <string_view>

#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {

/// Those of a reduction's tensors whose names begin so.
std::vector<NamedTensor> reduction_tensors(const StateTensors& state, std::string_view prefix) {
  std::vector<NamedTensor> chosen;
  for (const auto& named : state.reduction)
    if (named.name.starts_with(prefix)) chosen.push_back(named);
  return chosen;
}

/// The rows of another number of ranks: all that they owed, in equal shares.
std::optional<Failure> load_errors_of_others(std::int64_t ranks, std::vector<NamedTensor> errors,
                                             Communicator& comm, const GroupFiller& fill_tensors) {
  const at::NoGradGuard no_grad;
  std::vector<NamedTensor> rows;
  for (auto& named : errors) {
    const std::int64_t elements = named.tensor.numel();
    named.tensor.zero_();
    rows.push_back(
        {.name = named.name, .tensor = torch::empty({elements}), .shape = {ranks, elements}});
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (auto& row : rows) {
      const std::int64_t elements = row.tensor.numel();
      row.parts.assign(static_cast<std::size_t>(comm.world_size()),
                       {.begin = rank * elements, .end = (rank + 1) * elements});
    }
    if (auto failure = fill_tensors(rows)) return failure;
    for (std::size_t index = 0; index < rows.size(); ++index)
      errors[index].tensor.add_(rows[index].tensor);
  }
  for (auto& named : errors) named.tensor.div_(comm.world_size());
  return std::nullopt;
}

}  // namespace

std::optional<Failure> load_reduction(const ReductionToLoad& load, const StateTensors& state,
                                      const GroupFiller& fill_tensors) {
  const auto& mark = load.mark;
  auto errors = reduction_tensors(state, "error.");
  const bool is_first = load.communicator.rank() == 0;
  if (errors.empty() && mark.ranks > 0 && is_first)
    say(std::string("what a compressed reduction still owed in the checkpoint is left out: "
                    "--reduce is ") +
        to_string(load.plan.reduce.codec));
  if (!errors.empty() && mark.ranks > 0) {
    const bool is_of_as_many = mark.ranks == load.communicator.world_size();
    auto failure = is_of_as_many ? fill_tensors(errors)
                                 : load_errors_of_others(mark.ranks, std::move(errors),
                                                         load.communicator, fill_tensors);
    if (failure) return failure;
  }
  const auto factors = reduction_tensors(state, "factor.");
  if (factors.empty() || mark.factors_rank != load.plan.reduce.rank) return std::nullopt;
  return fill_tensors(factors);
}

}  // namespace tj::trainer
