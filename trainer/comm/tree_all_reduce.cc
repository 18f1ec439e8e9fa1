#include "trainer/comm/tree_all_reduce.h"

#include <torch/torch.h>

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

}  // namespace tj::trainer
