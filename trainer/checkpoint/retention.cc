#include "trainer/checkpoint/retention.h"

#include <algorithm>

#include "trainer/checkpoint/folder.h"

namespace tj::trainer {

void OwnCheckpoints::add(std::int64_t step) {
  if (keep_ == 0) return;  // nothing is ever removed
  names_.insert(names_.begin(), checkpoint_name(step));
  if (std::ssize(names_) > keep_) names_.pop_back();
}

void prune_checkpoints(const std::filesystem::path& out, const RetentionPolicy& policy,
                       const std::vector<std::string>& own, const OutClaim& claim) {
  if (policy.keep == 0 || own.empty()) return;
  std::int64_t older_kept = policy.keep - std::ssize(own);
  for (const auto& name : checkpoint_names(out)) {
    if (!is_newer_checkpoint(own.back(), name)) continue;
    if (older_kept-- > 0) continue;
    const bool stays = policy.keep_every > 0 && step_of_checkpoint(name) % policy.keep_every == 0;
    if (stays) continue;
    if (!check_claim(out, claim)) return;  // the next save says why
    remove_checkpoint(out, name);
  }
}

}  // namespace tj::trainer
