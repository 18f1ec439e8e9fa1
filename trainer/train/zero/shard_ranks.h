// Which ranks ZeRO shares out among, and which ones hold the same shards: groups of consecutive
// ranks, each with all of the model, as FSDP's hybrid sharding has them (Zhao et al. 2023: PyTorch
// FSDP, section 3.2.2). One group of all ranks is plain ZeRO. Torch-free.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "trainer/comm/communicator.h"

namespace tj::trainer {

/// A rank among `world_size`, in groups of `group_size`, which divides it.
struct RankInGroups {
  int rank = 0;
  int world_size = 1;
  int group_size = 1;

  int group_count() const { return world_size / group_size; }
  /// Which shard is its own.
  int shard() const { return rank % group_size; }
  /// Its group, ascending.
  std::vector<int> sharers() const;
  /// The ranks with its shard, one of each group, ascending.
  std::vector<int> holders() const;
};

/// The communicators of a rank's group, and of the ranks with its shard.
class ShardRanks {
 public:
  /// Collective. `group_size` divides the ranks of `all`, which outlives this; absent: all are one
  /// group.
  ShardRanks(Communicator& all, std::optional<int> group_size);

  const RankInGroups& place() const { return place_; }
  /// This rank's number there is that of its shard.
  Communicator& sharers() { return sharers_ ? *sharers_ : all_; }
  /// In the order of the groups; null: there is one.
  Communicator* holders() { return holders_.get(); }

 private:
  Communicator& all_;
  RankInGroups place_;
  std::unique_ptr<Communicator> sharers_;  // null: all ranks
  std::unique_ptr<Communicator> holders_;
};

}  // namespace tj::trainer
