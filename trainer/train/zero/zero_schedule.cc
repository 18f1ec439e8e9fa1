#include "trainer/train/zero/zero_schedule.h"

#include <algorithm>
#include <map>
#include <set>

namespace tj::trainer {
namespace {

using Units = std::vector<std::size_t>;

/// unit of each tensor that has one.
std::map<std::size_t, std::size_t> unit_of_tensor(std::span<const ZeroUnitPlan> units) {
  std::map<std::size_t, std::size_t> result;
  for (std::size_t unit = 0; unit < units.size(); ++unit)
    for (const auto tensor : units[unit].tensors) result[tensor] = unit;
  return result;
}

/// The units of each block, ascending.
std::vector<Units> units_of_blocks(std::span<const ZeroUnitPlan> units,
                                   std::span<const ModelBlock> blocks) {
  const auto unit_of = unit_of_tensor(units);
  std::vector<Units> result;
  for (const auto& block : blocks) {
    std::set<std::size_t> used;
    for (const auto tensor : block.tensors)
      if (const auto found = unit_of.find(tensor); found != unit_of.end())
        used.insert(found->second);
    result.emplace_back(used.begin(), used.end());
  }
  return result;
}

/// Walks through the steps and notes when which unit comes and goes.
class Planner {
 public:
  Planner(std::span<const ZeroUnitPlan> units, std::vector<ZeroStep> steps,
          const ZeroOptions& options)
      : units_(units), steps_(std::move(steps)), options_(options) {}

  std::vector<ZeroStep> plan() && {
    for (std::size_t step = 0; step < steps_.size(); ++step) {
      for (const auto unit : steps_[step].need) {
        if (!live_.contains(unit)) gather(unit, step);
        ahead_.erase(unit);
      }
      look_ahead(step);
      for (const auto unit : steps_[step].need) {
        if (stays(unit, step)) continue;
        steps_[step].release.push_back(unit);
        live_.erase(unit);
      }
    }
    return std::move(steps_);
  }

 private:
  void gather(std::size_t unit, std::size_t step) {
    steps_[step].gather.push_back(unit);
    live_.insert(unit);
  }

  std::int64_t elements(const std::set<std::size_t>& set) const {
    std::int64_t sum = 0;
    for (const auto unit : set) sum += units_[unit].elements;
    return sum;
  }

  bool needs(std::size_t step, std::size_t unit) const {
    return std::ranges::count(steps_[step].need, unit) > 0;
  }

  /// True when `unit`, used in `step`, is kept until it is needed again.
  bool stays(std::size_t unit, std::size_t step) const {
    const bool is_asked_for = options_.has_more_passes && options_.reuse > 0;
    const std::size_t end = steps_.size() + (is_asked_for ? step + 1 : 0);
    std::int64_t distance = 0;
    for (std::size_t next = step + 1; next < end; ++next) {
      const auto at = next % steps_.size();
      if (needs(at, unit)) return distance <= options_.reuse;
      for (const auto other : steps_[at].need) distance += units_[other].elements;
    }
    return false;
  }

  bool may_gather_ahead(std::size_t unit, std::size_t step, std::size_t user) const {
    const auto size = units_[unit].elements;
    if (elements(live_) + size > options_.live_max) return false;
    if (!options_.prefetch) return user == step + 1;
    return elements(ahead_) + size <= *options_.prefetch;
  }

  void look_ahead(std::size_t step) {
    for (std::size_t user = step + 1; user < steps_.size(); ++user) {
      for (const auto unit : steps_[user].need) {
        // It is there now and will be let go: to be gathered again, but not yet.
        const bool leaves = needs(step, unit) && !stays(unit, step);
        if (leaves) return;
        if (live_.contains(unit)) continue;
        if (!may_gather_ahead(unit, step, user)) return;
        gather(unit, step);
        ahead_.insert(unit);
      }
    }
  }

  std::span<const ZeroUnitPlan> units_;
  std::vector<ZeroStep> steps_;
  const ZeroOptions& options_;
  std::set<std::size_t> live_;
  std::set<std::size_t> ahead_;  // of those, not used yet
};

std::string list_text(const char* what, const Units& units) {
  if (units.empty()) return "";
  std::string text = std::string(" | ") + what;
  for (const auto unit : units) text += " " + std::to_string(unit);
  return text;
}

}  // namespace

std::vector<ZeroUnitPlan> plan_units(std::span<const std::int64_t> sizes,
                                     std::span<const ModelBlock> blocks,
                                     const ZeroOptions& options) {
  std::vector<ZeroUnitPlan> units;
  ZeroUnitPlan small;
  std::set<std::size_t> seen;
  const auto add = [&](ZeroUnitPlan& unit, std::size_t tensor) {
    unit.tensors.push_back(tensor);
    unit.elements += sizes[tensor];
  };
  for (const auto& block : blocks) {
    ZeroUnitPlan unit{.tensors = {}, .elements = 0, .is_whole = options.stage < 3};
    for (const auto tensor : block.tensors) {
      if (sizes[tensor] == 0 || !seen.insert(tensor).second) continue;
      const bool is_small = options.stage == 3 && sizes[tensor] <= options.persist;
      add(is_small ? small : unit, tensor);
    }
    if (!unit.tensors.empty()) units.push_back(std::move(unit));
  }
  if (!small.tensors.empty()) units.push_back(std::move(small));
  return units;
}

std::vector<ZeroStep> plan_steps(std::span<const ZeroUnitPlan> units,
                                 std::span<const ModelBlock> blocks, const ZeroOptions& options) {
  const auto used = units_of_blocks(units, blocks);
  std::vector<ZeroStep> steps(2 * blocks.size());
  std::set<std::size_t> is_reduced;
  for (std::size_t block = 0; block < blocks.size(); ++block) {
    auto& forward = steps[block];
    auto& backward = steps[steps.size() - 1 - block];
    for (const auto unit : used[block]) {
      if (is_reduced.insert(unit).second) backward.reduce.push_back(unit);
      if (units[unit].is_whole) continue;
      forward.need.push_back(unit);
      if (blocks[block].reads_in_backward) backward.need.push_back(unit);
    }
  }
  return Planner(units, std::move(steps), options).plan();
}

GatheredElements gathered_elements(std::span<const ZeroUnitPlan> units,
                                   std::span<const ZeroStep> steps, std::int64_t passes) {
  // From the second pass on all are alike.
  constexpr std::int64_t kPassesApart = 2;
  GatheredElements gathered;
  std::set<std::size_t> live;
  std::int64_t held = 0;
  for (std::int64_t pass = 0; pass < std::min(passes, kPassesApart); ++pass) {
    const std::int64_t times = pass == 0 ? 1 : passes - 1;
    for (const auto& step : steps) {
      for (const auto unit : step.gather) {
        if (!live.insert(unit).second) continue;
        gathered.of_step += times * units[unit].elements;
        held += units[unit].elements;
      }
      gathered.at_once = std::max(gathered.at_once, held);
      for (const auto unit : step.release) held -= live.erase(unit) > 0 ? units[unit].elements : 0;
    }
  }
  return gathered;
}

std::string schedule_text(std::span<const ZeroStep> steps) {
  std::string text;
  const std::size_t blocks = steps.size() / 2;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const bool is_forward = step < blocks;
    const auto block = is_forward ? step : steps.size() - 1 - step;
    text += (is_forward ? "forward " : "backward ") + std::to_string(block);
    text += list_text("gather", steps[step].gather) + list_text("need", steps[step].need);
    text += list_text("release", steps[step].release) + list_text("reduce", steps[step].reduce);
    text += "\n";
  }
  return text;
}

}  // namespace tj::trainer
