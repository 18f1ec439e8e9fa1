#include "trainer/watch/phase_clock.h"

#include <array>

namespace tj::trainer {
namespace {
constexpr std::array kPhaseNames{"start", "step", "eval", "save", "end"};
}

const char* to_string(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

Phase phase_from(const std::string& name) {
  for (std::size_t index = 0; index < kPhaseNames.size(); ++index) {
    if (name == kPhaseNames[index]) return static_cast<Phase>(index);
  }
  return Phase::start;
}

std::string phase_text(const Seen& seen) {
  std::string text = std::string("phase ") + to_string(seen.phase);
  if (seen.step > 0) text += " after step " + std::to_string(seen.step);
  return text;
}

void PhaseClock::enter(Phase phase) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  seen_.phase_seconds[static_cast<std::size_t>(seen_.phase)] +=
      std::chrono::duration<double>(now - std::exchange(entered_at_, now)).count();
  seen_.phase = phase;
  note_move();
}

void PhaseClock::step_done(std::int64_t step) {
  if (auto* const timer = timer_.load()) count_ended(*timer);
  const std::scoped_lock lock(mutex_);
  seen_.step = step;
  note_move();
}

void PhaseClock::moved() {
  const std::scoped_lock lock(mutex_);
  note_move();
}

void PhaseClock::gradient_made() {
  const std::scoped_lock lock(mutex_);
  ++seen_.gradients;
  note_move();
}

void PhaseClock::follow_device(std::function<DeviceCollectives()> device) {
  const std::scoped_lock lock(mutex_);
  device_ = std::move(device);
}

PhaseClock::Scope PhaseClock::collective(const char* name) {
  {
    const std::scoped_lock lock(mutex_);
    ++seen_.collectives;
    seen_.collective = name;
    seen_.is_in_collective = true;
    seen_.gradients = 0;
    note_move();
  }
  return {*this, Section::collective};
}

PhaseClock::Scope PhaseClock::wait_for(const char* what) {
  {
    const std::scoped_lock lock(mutex_);
    seen_.waits_for = what;
    note_move();
  }
  return {*this, Section::collective};
}

std::optional<std::uint64_t> PhaseClock::begin_on_device() {
  auto* const timer = timer_.load();
  return timer == nullptr ? std::nullopt : std::optional(timer->begin());
}

void PhaseClock::leave(const Scope& scope) {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - scope.begun_;
  Counted counted{.section = scope.section_};
  {
    const std::scoped_lock lock(mutex_);
    if (scope.section_ == Section::collective) {
      seen_.is_in_collective = false;
      seen_.waits_for.clear();
    }
    counted.is_in_step = seen_.phase == Phase::step;
    if (!scope.on_device_) add(counted, taken.count());
    note_move();
  }
  auto* const timer = timer_.load();
  if (timer == nullptr || !scope.on_device_) return;
  timer->end(*scope.on_device_, counted);
  count_ended(*timer);
}

/// Not with the lock held, under which the watchdog looks: a device that hangs may hold its caller.
void PhaseClock::count_ended(DeviceTimer& timer) {
  const auto ended = timer.take_ended();
  const std::scoped_lock lock(mutex_);
  for (const auto& [of, seconds] : ended) add(of, seconds);
}

/// With the lock held.
void PhaseClock::add(Counted counted, double seconds) {
  switch (counted.section) {
    case Section::data: seen_.data_seconds += seconds; break;
    case Section::forward: seen_.forward_seconds += seconds; break;
    case Section::collective: seen_.collective_seconds += seconds; break;
    case Section::save: break;
  }
  if (counted.is_in_step)
    seen_.step_section_seconds[static_cast<std::size_t>(counted.section)] += seconds;
}

Seen PhaseClock::seen() const {
  const std::scoped_lock lock(mutex_);
  Seen seen = seen_;
  if (device_) seen.device = device_();
  const auto now = std::chrono::steady_clock::now();
  seen.still_seconds = std::chrono::duration<double>(now - moved_at_).count();
  seen.phase_seconds[static_cast<std::size_t>(seen.phase)] +=
      std::chrono::duration<double>(now - entered_at_).count();
  return seen;
}

}  // namespace tj::trainer
