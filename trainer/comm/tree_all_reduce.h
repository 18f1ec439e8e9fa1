// A sum over ranks whose order of additions is fixed: the same bits whatever the network does, and
// the upper part of the same tree when fewer ranks hold larger subtrees.
#pragma once
#include <vector>

#include "trainer/comm/communicator.h"

namespace tj::trainer {

/// Collective, in place. `tensor` is one-dimensional and contiguous. The sum is the binary tree
/// over the ranks in order, ((0 + 1) + (2 + 3)) + ...: recursive halving from the nearest partner
/// on, then recursive doubling back (Thakur, Rabenseifner, Gropp 2005, section 4.4), 2 (N - 1) / N
/// of its bytes in each direction. Needs a world size that is a power of two.
void tree_all_reduce(Communicator& communicator, at::Tensor& tensor);

/// The same tree over `rows` (all of one shape, at least one), which this rank has: added in
/// float32 and left in `sum`, which may be one of them. An odd one out goes up a level as it is.
void tree_sum(std::vector<at::Tensor> rows, at::Tensor& sum);

}  // namespace tj::trainer
