// Bugs planted on purpose, each of a kind that such an operator may have, to show that the
// simulation finds them. They stand between the real operator and its link; the product knows
// nothing of them.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "operator/kube/kube_api.h"

namespace tj::sim {

enum class Bug {
  none,
  deletes_by_name,    // a deletion is not bound to the uid
  writes_blindly,     // a status is written whatever was written meanwhile
  deletes_too_early,  // a verdict is written only after the deletions that follow from it
  counts_in_memory,   // the attempt is counted in the process, and never written
  misses_the_end,     // a job that is gone is taken for living
};
inline constexpr std::array kBugs = {Bug::deletes_by_name, Bug::writes_blindly,
                                     Bug::deletes_too_early, Bug::counts_in_memory,
                                     Bug::misses_the_end};
const char* to_string(Bug bug);
std::optional<Bug> parse_bug(const std::string& text);

/// An operator's view of `api` with the bug in it; null without a bug.
std::unique_ptr<KubeApi> sabotage(Bug bug, KubeApi& api);

}  // namespace tj::sim
