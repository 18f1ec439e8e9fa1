#include "operator/api/rank_set.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "operator/api/policy_fields.h"

namespace tj {
namespace {

/// Takes a rank off the front of `text`.
std::optional<int> take_rank(std::string_view& text) {
  int number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || number < 0 || number >= field::kWorkers.max) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return number;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

RankSet RankSet::parse(const std::string& text) {
  RankSet set;
  std::string_view rest = text;
  do {
    const auto first = take_rank(rest);
    const auto last = first && take(rest, '-') ? take_rank(rest) : first;
    const bool is_range = first && last && *first <= *last &&
                          (set.ranges_.empty() || *first > set.ranges_.back().second + 1);
    if (!is_range) break;
    set.ranges_.emplace_back(*first, *last);
  } while (take(rest, ','));
  return set;
}

std::string RankSet::text() const {
  std::string text;
  for (const auto& [first, last] : ranges_) {
    if (!text.empty()) text += ",";
    text += std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  return text;
}

void RankSet::insert(int rank) {
  // The first range that ends just before the rank, or later.
  const auto next = std::find_if(ranges_.begin(), ranges_.end(),
                                 [&](const auto& range) { return range.second + 1 >= rank; });
  if (next == ranges_.end() || next->first > rank + 1) {
    ranges_.insert(next, {rank, rank});
    return;
  }
  next->first = std::min(next->first, rank);
  next->second = std::max(next->second, rank);
  const auto after = std::next(next);
  if (after == ranges_.end() || after->first > next->second + 1) return;
  next->second = after->second;
  ranges_.erase(after);
}

bool RankSet::contains(int rank) const {
  const auto range = std::partition_point(ranges_.begin(), ranges_.end(),
                                          [&](const auto& each) { return each.second < rank; });
  return range != ranges_.end() && range->first <= rank;
}

int RankSet::size() const {
  int size = 0;
  for (const auto& [first, last] : ranges_) size += last - first + 1;
  return size;
}

}  // namespace tj
