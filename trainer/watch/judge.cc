#include "trainer/watch/judge.h"

#include <algorithm>
#include <cstdio>

namespace tj::trainer {
namespace {

constexpr double kSlowFactor = 1.5;
constexpr double kStepShareMin = 0.1;

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f s", seconds);
  return text;
}

std::string milliseconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", seconds * 1e3);
  return text;
}

std::string limit_text(const char* name, double seconds) {
  return std::string("limit ") + name + "=" + seconds_text(seconds);
}

/// "phase step after step 12, in all-reduce no. 77"
std::string place_of(const Seen& seen) {
  const std::string text = phase_text(seen);
  if (seen.collectives == 0) return text + ", before its first collective";
  return text + (seen.is_in_collective ? ", in " : ", after ") + seen.collective + " no. " +
         std::to_string(seen.collectives);
}

std::string others_text(std::size_t count) {
  if (count <= 1) return "";
  return " (and " + std::to_string(count - 1) + " more)";
}

std::optional<Accused> judge_silence(std::span<const Sign> signs, double limit) {
  const Sign* worst = nullptr;
  std::size_t count = 0;
  for (const Sign& sign : signs) {
    if (sign.silent_seconds <= limit || sign.seen.phase == Phase::end) continue;
    ++count;
    if (worst == nullptr || sign.silent_seconds > worst->silent_seconds) worst = &sign;
  }
  if (worst == nullptr) return std::nullopt;
  return Accused{.rank = worst->rank,
                 .is_silent = true,
                 .sentence = named(worst->rank, worst->node) + others_text(count) +
                             " is frozen or unreachable: no sign of life for " +
                             seconds_text(worst->silent_seconds) + " (" +
                             limit_text("silence", limit) + ")" + last_seen_text(worst->seen)};
}

bool is_overdue(const Sign& sign, const Limits& limits) {
  const auto limit = limit_of(limits, sign.seen.phase);
  return limit && sign.seen.still_seconds > *limit;
}

/// The one that the others wait for, if it can be told.
const Sign* hindmost(std::span<const Sign> signs) {
  const Sign* outside = nullptr;
  for (const Sign& sign : signs) {
    if (sign.seen.is_in_collective || sign.seen.phase == Phase::end) continue;
    if (outside == nullptr || sign.seen.still_seconds > outside->seen.still_seconds)
      outside = &sign;
  }
  if (outside != nullptr) return outside;
  const auto [least, most] = std::ranges::minmax_element(
      signs, {}, [](const Sign& sign) { return sign.seen.collectives; });
  return least->seen.collectives < most->seen.collectives ? &*least : nullptr;
}

}  // namespace

std::string named(int rank, const std::string& node) {
  return "rank " + std::to_string(rank) + " on node " + node;
}

std::string last_seen_text(const Seen& seen) { return ", last seen in " + place_of(seen); }

std::optional<Accused> judge(std::span<const Sign> signs, const Limits& limits) {
  if (limits.silence > 0) {
    if (auto silent = judge_silence(signs, limits.silence)) return silent;
  }
  const auto overdue =
      std::ranges::find_if(signs, [&](const Sign& sign) { return is_overdue(sign, limits); });
  if (overdue == signs.end()) return std::nullopt;
  const std::string limit =
      limit_text(to_string(overdue->seen.phase), *limit_of(limits, overdue->seen.phase));
  const Sign* const blamed = hindmost(signs);
  if (blamed == nullptr) {
    return Accused{.sentence = "all ranks wait for each other for " +
                               seconds_text(overdue->seen.still_seconds) + " (" + limit + "), in " +
                               place_of(overdue->seen) +
                               ": the network between them carries nothing"};
  }
  return Accused{.rank = blamed->rank,
                 .sentence = named(blamed->rank, blamed->node) + " stands still for " +
                             seconds_text(blamed->seen.still_seconds) + " (" + limit + "), in " +
                             place_of(blamed->seen)};
}

std::optional<Accused> find_straggler(std::span<const WorkDone> work, double step_seconds) {
  if (work.size() < 2) return std::nullopt;
  const auto total = [](const WorkDone& one) { return one.data_seconds + one.forward_seconds; };
  std::vector<WorkDone> by_time(work.begin(), work.end());
  std::ranges::sort(by_time, {}, total);
  const WorkDone slowest = by_time.back();
  by_time.pop_back();
  const WorkDone& usual = by_time[by_time.size() / 2];
  const double cost_seconds = total(slowest) - total(usual);
  if (total(slowest) < kSlowFactor * total(usual) || cost_seconds < kStepShareMin * step_seconds)
    return std::nullopt;
  return Accused{.rank = slowest.rank,
                 .sentence = named(slowest.rank, slowest.node) + " is slow: data " +
                             milliseconds_text(slowest.data_seconds) + " and forward " +
                             milliseconds_text(slowest.forward_seconds) + " a step, the others " +
                             milliseconds_text(usual.data_seconds) + " and " +
                             milliseconds_text(usual.forward_seconds) +
                             "; all wait for it in each step of " +
                             milliseconds_text(step_seconds)};
}

}  // namespace tj::trainer
