#include "trainer/train/zero/shard_ranks.h"

#include "contract/result.h"

namespace tj::trainer {

std::vector<int> RankInGroups::sharers() const {
  std::vector<int> ranks;
  for (int each = rank - shard(); each < rank - shard() + group_size; ++each) ranks.push_back(each);
  return ranks;
}

std::vector<int> RankInGroups::holders() const {
  std::vector<int> ranks;
  for (int each = shard(); each < world_size; each += group_size) ranks.push_back(each);
  return ranks;
}

ShardRanks::ShardRanks(Communicator& all, std::optional<int> group_size)
    : all_(all),
      place_{.rank = all.rank(),
             .world_size = all.world_size(),
             .group_size = group_size.value_or(all.world_size())} {
  TJ_CHECK(place_.group_size > 0 && place_.world_size % place_.group_size == 0,
           "a plan is made with groups that divide the ranks");
  if (place_.group_count() == 1) return;
  sharers_ = all.split(place_.sharers());
  holders_ = all.split(place_.holders());
}

}  // namespace tj::trainer
