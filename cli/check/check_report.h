// What a check found, rank by rank. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "operator/api/types.h"

namespace tj::check {

struct RankResult {
  int rank = 0;
  std::string node;
  std::optional<ContainerExit> exit;  // absent: it has not ended
  std::string waiting;                // for what, where it has not ended
  std::vector<std::string> log;       // lines; anybody's text
};

bool has_passed(const RankResult& result);

/// One line for each rank, its log below it, and whether training can begin. `image` is named where
/// it has no trainer.
std::string report_text(const std::vector<RankResult>& results, const std::string& image);

}  // namespace tj::check
