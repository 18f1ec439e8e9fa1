#include "trainer/watch/judge.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>

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

/// ", in all-reduce no. 77", ", after all-reduce no. 76 and 5 gradients"
std::string progress_of(const Seen& seen) {
  const std::string waits = seen.waits_for.empty() ? "" : ", in " + seen.waits_for;
  if (seen.collectives == 0) return waits + ", before its first collective";
  std::string text = waits + (seen.is_in_collective ? ", in " : ", after ") + seen.collective +
                     " no. " + std::to_string(seen.collectives);
  if (seen.gradients > 0) text += " and " + std::to_string(seen.gradients) + " gradients";
  return text;
}

/// ", its GPU in collective no. 812"
std::string device_text(const DeviceCollectives& device) {
  if (device.begun == 0) return "";
  return std::string(", its GPU ") + (device.begun > device.ended ? "in" : "after") +
         " collective no. " + std::to_string(device.begun);
}

/// "phase step after step 12, in all-reduce no. 77"
std::string place_of(const Seen& seen) {
  return phase_text(seen) + progress_of(seen) + device_text(seen.device);
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

/// How far a rank has come in what all ranks do in one order; the least is the one that the others
/// wait for.
struct Position {
  std::int64_t device_collectives = 0;  // first: the host goes on while its GPU is held up
  std::int64_t collectives = 0;
  std::int64_t gradients = 0;
  bool waits = false;
  auto operator<=>(const Position&) const = default;
};

bool waits_for_others(const Seen& seen) {
  return seen.is_in_collective || !seen.waits_for.empty() || seen.device.begun > seen.device.ended;
}

Position position_of(const Sign& sign) {
  return {.device_collectives = sign.seen.device.begun,
          .collectives = sign.seen.collectives,
          .gradients = sign.seen.gradients,
          .waits = waits_for_others(sign.seen)};
}

/// Where nothing ends the silent, their silence is standing still.
double still_seconds(const Sign& sign, const Limits& limits) {
  return sign.seen.still_seconds + (limits.silence > 0 ? 0 : sign.silent_seconds);
}

/// Negative within the limit.
double over_limit_seconds(const Sign& sign, const Limits& limits) {
  const auto limit = limit_of(limits, sign.seen.phase);
  if (!limit) return -std::numeric_limits<double>::infinity();
  return still_seconds(sign, limits) - *limit;
}

/// How long those ahead of `last` have stood, the longest of them; none where nobody is ahead.
std::optional<double> wait_of_those_ahead_seconds(std::span<const Sign> running,
                                                  const Position& last, const Limits& limits) {
  std::optional<double> longest;
  for (const Sign& sign : running)
    if (position_of(sign) > last)
      longest = std::max(longest.value_or(0), still_seconds(sign, limits));
  return longest;
}

/// Of those that still run, the ones furthest behind, the longest over its limit first. One that
/// waited holds the others up only since they came past it, which its sign, older than theirs, may
/// not know of.
std::vector<Sign> hindmost(std::span<const Sign> running, const Limits& limits) {
  const Position last = position_of(*std::ranges::min_element(running, {}, position_of));
  const auto ahead_seconds = wait_of_those_ahead_seconds(running, last, limits);
  std::vector<Sign> behind;
  for (const Sign& sign : running) {
    if (position_of(sign) != last) continue;
    behind.push_back(sign);
    double& still = behind.back().seen.still_seconds;
    if (last.waits && ahead_seconds) still = std::min(still, *ahead_seconds);
  }
  std::ranges::stable_sort(behind, std::greater(),
                           [&](const Sign& sign) { return over_limit_seconds(sign, limits); });
  return behind;
}

std::vector<Sign> still_running(std::span<const Sign> signs) {
  std::vector<Sign> running(signs.begin(), signs.end());
  std::erase_if(running, [](const Sign& sign) { return sign.seen.phase == Phase::end; });
  return running;
}

/// All wait in one collective: the last that came has waited the least.
std::optional<Accused> judge_network(const Sign& last_to_come, const Limits& limits) {
  if (over_limit_seconds(last_to_come, limits) <= 0) return std::nullopt;
  const Seen& seen = last_to_come.seen;
  return Accused{.sentence =
                     "all ranks wait for each other for " + seconds_text(seen.still_seconds) +
                     " (" + limit_text(to_string(seen.phase), *limit_of(limits, seen.phase)) +
                     "), in " + place_of(seen) + ": the network between them carries nothing"};
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
  const auto running = still_running(signs);
  if (running.empty()) return std::nullopt;
  const auto behind = hindmost(running, limits);
  const bool all_wait = waits_for_others(behind.front().seen) && behind.size() > 1;
  if (all_wait && behind.size() == running.size()) return judge_network(behind.back(), limits);
  const Sign& blamed = behind.front();
  if (over_limit_seconds(blamed, limits) <= 0) return std::nullopt;
  const Phase phase = blamed.seen.phase;
  return Accused{.rank = blamed.rank,
                 .sentence = named(blamed.rank, blamed.node) + " stands still for " +
                             seconds_text(blamed.seen.still_seconds) + " (" +
                             limit_text(to_string(phase), *limit_of(limits, phase)) + "), in " +
                             place_of(blamed.seen)};
}

bool stands_still(const Sign& sign, const Limits& limits) {
  return !waits_for_others(sign.seen) && over_limit_seconds(sign, limits) > 0;
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
