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

void PhaseClock::leave(Section section, std::chrono::steady_clock::duration taken) {
  const double seconds = std::chrono::duration<double>(taken).count();
  const std::scoped_lock lock(mutex_);
  switch (section) {
    case Section::data: seen_.data_seconds += seconds; break;
    case Section::forward: seen_.forward_seconds += seconds; break;
    case Section::collective:
      seen_.collective_seconds += seconds;
      seen_.is_in_collective = false;
      seen_.waits_for.clear();
      break;
    case Section::save: break;
  }
  if (seen_.phase == Phase::step)
    seen_.step_section_seconds[static_cast<std::size_t>(section)] += seconds;
  note_move();
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
