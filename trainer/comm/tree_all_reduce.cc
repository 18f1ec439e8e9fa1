#include "trainer/comm/tree_all_reduce.h"

#include <torch/types.h>

#include <bit>

namespace tj::trainer {
namespace {

struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  at::Tensor of(const at::Tensor& tensor) const { return tensor.narrow(0, begin, end - begin); }
};

/// One level of the tree, as this rank sees it.
struct Level {
  int partner = 0;
  Piece kept;
  Piece given;
};

}  // namespace

void tree_all_reduce(Communicator& communicator, at::Tensor& tensor) {
  const int world_size = communicator.world_size();
  const int rank = communicator.rank();
  TORCH_CHECK(std::has_single_bit(static_cast<unsigned>(world_size)),
              "the tree needs a power of two of ranks, not ", world_size);
  const at::NoGradGuard no_grad;
  std::vector<Level> levels;
  Piece mine{0, tensor.numel()};
  for (int distance = 1; distance < world_size; distance *= 2) {
    const std::int64_t middle = mine.begin + (mine.end - mine.begin) / 2;
    const Piece lower{mine.begin, middle};
    const Piece upper{middle, mine.end};
    const bool keeps_lower = (rank & distance) == 0;
    levels.push_back({.partner = rank ^ distance,
                      .kept = keeps_lower ? lower : upper,
                      .given = keeps_lower ? upper : lower});
    const auto& level = levels.back();
    auto received = at::empty_like(level.kept.of(tensor));
    communicator.exchange(level.given.of(tensor), received, level.partner);
    level.kept.of(tensor).add_(received);
    mine = level.kept;
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    auto received = level->given.of(tensor);
    communicator.exchange(level->kept.of(tensor), received, level->partner);
  }
}

void tree_sum(std::vector<at::Tensor> rows, at::Tensor& sum) {
  const at::NoGradGuard no_grad;
  for (auto& row : rows) row = row.to(at::kFloat);
  while (rows.size() > 2) {
    std::vector<at::Tensor> above;
    for (std::size_t left = 0; left < rows.size(); left += 2)
      above.push_back(left + 1 < rows.size() ? rows[left] + rows[left + 1] : rows[left]);
    rows = std::move(above);
  }
  if (rows.size() == 1) {
    sum.copy_(rows[0]);
  } else {
    at::add_out(sum, rows[0], rows[1]);  // rounds to the type of `sum` at the end
  }
}

}  // namespace tj::trainer
