// What the training thread is doing and since when. It writes; the watchdog and the progress server
// read, from their own threads.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

namespace tj::trainer {

enum class Phase { start, step, eval, save, end };
/// "start", "step", "eval", "save", "end": as in the progress document.
const char* to_string(Phase phase);
/// The phase of that name; `start` of any other.
Phase phase_from(const std::string& name);

/// Parts of a step whose time is counted.
enum class Section {
  data,        // waiting for the next batch
  forward,     // of all passes: this rank's own speed, as nobody is waited for
  collective,  // the training thread waits for other ranks
  save,        // it waits until a checkpoint's copy is made
};
inline constexpr std::size_t kPhases = 5;
inline constexpr std::size_t kSections = 4;

/// What a GPU has done of the collectives that the host has given it: it is behind the host.
struct DeviceCollectives {
  std::int64_t begun = 0;
  std::int64_t ended = 0;
  bool operator==(const DeviceCollectives&) const = default;
};

struct Seen {
  Phase phase = Phase::start;
  double still_seconds = 0;      // since the training thread last did anything that is counted here
  std::int64_t step = 0;         // finished steps
  std::int64_t collectives = 0;  // begun, of those that all ranks take part in, in one order
  std::string collective;        // the last one begun: "all-reduce"
  bool is_in_collective = false;
  std::int64_t gradients = 0;  // of a backward pass, made since that collective was begun
  std::string waits_for;       // other ranks beside collectives: "exchange"; empty: nobody
  DeviceCollectives device;    // zeros without a GPU
  double data_seconds = 0;     // totals
  double forward_seconds = 0;
  double collective_seconds = 0;
  std::array<double, kPhases> phase_seconds{};           // by Phase, up to now
  std::array<double, kSections> step_section_seconds{};  // by Section, within Phase::step only
};

/// "phase step after step 12"
std::string phase_text(const Seen& seen);

class PhaseClock {
 public:
  void enter(Phase phase);
  /// `step` optimizer steps are finished.
  void step_done(std::int64_t step);
  /// Something was done that is counted nowhere else, such as a megabyte of a long file.
  void moved();
  /// Backward has made one more gradient of this rank. On any thread.
  void gradient_made();

  /// Adds its own life time to the section; a collective counts as a section of that name.
  class Scope {
   public:
    Scope(PhaseClock& clock, Section section) : clock_(clock), section_(section) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { clock_.leave(section_, std::chrono::steady_clock::now() - begun_); }

   private:
    PhaseClock& clock_;
    Section section_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };
  [[nodiscard]] Scope time(Section section) { return {*this, section}; }
  /// `name` is a literal: "all-reduce", "broadcast", ...
  [[nodiscard]] Scope collective(const char* name);
  /// A wait for some of the other ranks that is no collective of all; counts as time of those.
  /// `what` is a literal: "exchange".
  [[nodiscard]] Scope wait_for(const char* what);

  /// Asked with each seen(), on its thread, and so must not block; empty: there is no device. It is
  /// not called any more once another one has been given.
  void follow_device(std::function<DeviceCollectives()> device);

  Seen seen() const;

 private:
  friend class Scope;
  void leave(Section section, std::chrono::steady_clock::duration taken);
  void note_move() { moved_at_ = std::chrono::steady_clock::now(); }

  mutable std::mutex mutex_;  // guards the rest
  Seen seen_;
  std::function<DeviceCollectives()> device_;
  std::chrono::steady_clock::time_point moved_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point entered_at_ = moved_at_;  // the phase
};

}  // namespace tj::trainer
