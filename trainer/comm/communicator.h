// The seam between training and the network: what a step needs of the other ranks, and nothing
// else. Real classes: SingleCommunicator (one rank), C10dCommunicator (several).
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/comm/reduce_options.h"

namespace at {
class Tensor;
}

namespace tj::trainer {

/// Makes the gradients of one model equal on all ranks, while backward runs.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  /// Call before the forward pass whose backward completes a step: that backward then leaves in
  /// each gradient the mean over the ranks of what they accumulated. Passes without it stay local.
  virtual void before_last_pass() = 0;
  /// Call between the two, with what backward begins at.
  virtual void before_backward(const at::Tensor& loss) = 0;
  /// After the backward of a step whose compressed reduction was compared with the exact one: the
  /// cosine of the two. Once; not a number where a gradient is not finite. Local, and the same on
  /// all ranks.
  virtual std::optional<double> take_cosine() { return std::nullopt; }
};

/// A collective under way. What it reads and writes must stay until wait() has returned.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Throws as the collectives do. Called once.
  virtual void wait() = 0;
};

/// What this rank has sent in collectives over tensors, as a ring does: (N - 1) / N of a tensor in
/// a reduce-scatter or an all-gather, twice that in an all-reduce. It has received as much. Of a
/// compressed reduction the bytes are those of the codec, as they were sent.
struct CommVolume {
  std::int64_t elements_sent = 0;
  std::int64_t bytes_sent = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// "rank 1 on node b"
  virtual std::string named(int rank) const = 0;
  /// Collectives: every rank calls them in the same order. PeerLostError when a rank went away.
  virtual void all_reduce_sum(at::Tensor& tensor) = 0;
  /// Begins one that goes on beside the computing and all other collectives, which it does not hold
  /// up: for large tensors.
  virtual std::unique_ptr<Pending> begin_all_reduce_sum(at::Tensor& tensor) = 0;
  virtual void broadcast(at::Tensor& tensor, int root) = 0;
  /// Sends `out` to `peer`, and fills `in` with what `peer` sends in its call with this rank.
  virtual void exchange(const at::Tensor& out, at::Tensor& in, int peer) = 0;
  /// Begins: `whole` [world_size x n] becomes the `mine` [n] of all ranks, in their order. `mine`
  /// may be this rank's place in `whole`. All flat and contiguous, of one type.
  virtual std::unique_ptr<Pending> all_gather(const at::Tensor& mine, at::Tensor& whole) = 0;
  /// Begins: `mine` [n] becomes the sum over all ranks of their `whole` [world_size x n] at this
  /// rank's place, which `mine` may be. On the CPU the sum is the binary tree over the ranks in
  /// order, ((0 + 1) + (2 + 3)) + ..., in float32 (trainer/comm/tree_all_reduce.h has the same
  /// bits); on a GPU it is NCCL's own, where both are of one type.
  virtual std::unique_ptr<Pending> reduce_scatter(const at::Tensor& whole, at::Tensor& mine) = 0;
  /// Of all that this rank has sent, in what was split off, too.
  virtual CommVolume volume() const = 0;
  /// Collective, each rank with the list that it is in: a communicator of `ranks` (ascending; the
  /// lists of all ranks have none in common), numbered by their places there. This one outlives
  /// it. It does not synchronise().
  virtual std::unique_ptr<Communicator> split(std::span<const int> ranks) = 0;
  virtual std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>& parameters,
                                                    std::span<const std::string> names,
                                                    const SyncOptions& options) = 0;
  /// Throws PeerLostError, with the lost rank if knowable, when a collective (backward runs ours
  /// inside) has thrown `failure` because another rank is gone; returns otherwise.
  virtual void check_peers(const std::exception& failure) = 0;
  /// The end of all communication: returns once no rank needs this one any more, or after a bound.
  virtual void finish() noexcept = 0;
};

std::unique_ptr<Communicator> make_single_communicator();

}  // namespace tj::trainer
