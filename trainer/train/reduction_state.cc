#include "trainer/train/reduction_state.h"

#include <torch/types.h>

#include <string>
#include <string_view>

#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {

std::vector<NamedTensor> with_prefix(const std::vector<NamedTensor>& tensors,
                                     std::string_view prefix) {
  std::vector<NamedTensor> chosen;
  for (const auto& named : tensors)
    if (named.name.starts_with(prefix)) chosen.push_back(named);
  return chosen;
}

/// One row after another, of all tensors, so that there is one more copy of them and not one of
/// each rank.
std::optional<Failure> share_out(Communicator& communicator, std::int64_t ranks,
                                 const std::vector<NamedTensor>& errors,
                                 const GroupFiller& fill_tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  std::vector<NamedTensor> rows;
  for (const auto& named : errors) {
    const std::int64_t elements = named.tensor.numel();
    sums.push_back(named.tensor);
    sums.back().zero_();
    rows.push_back(
        {.name = named.name, .tensor = torch::empty({elements}), .shape = {ranks, elements}});
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (auto& row : rows) {
      const std::int64_t elements = row.tensor.numel();
      row.parts.assign(static_cast<std::size_t>(communicator.world_size()),
                       {.begin = rank * elements, .end = (rank + 1) * elements});
    }
    if (auto failure = fill_tensors(rows)) return failure;
    for (std::size_t index = 0; index < rows.size(); ++index) sums[index].add_(rows[index].tensor);
  }
  for (auto& sum : sums) sum.div_(communicator.world_size());
  return std::nullopt;
}

}  // namespace

std::optional<Failure> load_reduction(Communicator& communicator, const ReductionMark& mark,
                                      const ReduceOptions& options,
                                      const std::vector<NamedTensor>& reduction,
                                      const GroupFiller& fill_tensors) {
  const auto errors = with_prefix(reduction, "error.");
  if (errors.empty() && mark.ranks > 0 && communicator.rank() == 0)
    say(std::string("what a compressed reduction still owed in the checkpoint is left out: "
                    "--reduce is ") +
        to_string(options.codec));
  if (!errors.empty() && mark.ranks > 0) {
    auto failure = mark.ranks == communicator.world_size()
                       ? fill_tensors(errors)
                       : share_out(communicator, mark.ranks, errors, fill_tensors);
    if (failure) return failure;
  }
  const auto factors = with_prefix(reduction, "factor.");
  if (factors.empty() || mark.factors_rank != options.rank) return std::nullopt;
  return fill_tensors(factors);
}

}  // namespace tj::trainer
