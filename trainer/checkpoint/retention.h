// Which checkpoints of a run stay. A run vouches only for those that it has verified itself: the
// one it went on from, and those it wrote.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/claim.h"

namespace tj::trainer {

struct RetentionPolicy {
  std::int64_t keep = 0;        // newest checkpoints; 0: all
  std::int64_t keep_every = 0;  // those of a multiple of this step stay for ever; 0: none
};

/// The checkpoints that a run vouches for, newest first, as many as it keeps.
class OwnCheckpoints {
 public:
  explicit OwnCheckpoints(std::int64_t keep) : keep_(keep) {}
  /// Newer than all before it.
  void add(std::int64_t step);
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::int64_t keep_;
  std::vector<std::string> names_;
};

/// Removes what the policy does not keep, once the newest of `own` is committed. One of `own` goes
/// only for newer ones of `own`. What others left counts where it is older than all of them; what
/// lies between stays as long as they do, as nobody has verified it. Stops where `claim` does not
/// hold any more.
void prune_checkpoints(const std::filesystem::path& out, const RetentionPolicy& policy,
                       const std::vector<std::string>& own, const OutClaim& claim = {});

}  // namespace tj::trainer
