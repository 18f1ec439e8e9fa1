// Which rank holds the others up, from what each last told about itself. Pure.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/watch/limits.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

/// What one rank last told, and how long ago by the judge's own clock.
struct Sign {
  int rank = 0;
  std::string node;
  Seen seen;
  double silent_seconds = 0;
};

/// "rank 1 on node b"
std::string named(int rank, const std::string& node);
/// ", last seen in phase step after step 12, in all-reduce no. 77"; outside of one: ", after
/// all-reduce no. 76 and 5 gradients"
std::string last_seen_text(const Seen& seen);

struct Accused {
  int rank = -1;           // -1: no single one
  bool is_silent = false;  // of the whole process; else its training thread stands still
  std::string sentence;
  bool operator==(const Accused&) const = default;
};

/// None while no rank is silent and the one that is furthest behind is within the limit of its own
/// phase: however long the others wait for it, they are not to blame, nor are theirs the limits
/// (pytorch#118369: equal time-outs on all ranks name nobody). Behind is who has begun fewer
/// collectives (the GPU's count first), then who has made fewer gradients since, then who waits for
/// nobody; never who stands still the longest. Of one that waits, no more counts than those ahead
/// of it have stood since: before, it waited for them.
std::optional<Accused> judge(std::span<const Sign> signs, const Limits& limits);

/// It is over the limit of its phase, and not because it waits for others.
bool stands_still(const Sign& sign, const Limits& limits);

/// One rank's own work between two looks.
struct WorkDone {
  int rank = 0;
  std::string node;
  double data_seconds = 0;  // per step
  double forward_seconds = 0;
};

/// The rank for which the others wait in each step: its data and forward time, in which nobody is
/// waited for, is 1.5 times the median of the others and costs a tenth of the step at least. A
/// sentence, or none.
std::optional<Accused> find_straggler(std::span<const WorkDone> work, double step_seconds);

}  // namespace tj::trainer
