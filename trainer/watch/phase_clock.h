// What the training thread is doing and since when. It writes; the watchdog and the progress server
// read, from their own threads.
#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

/// For what a section's seconds are counted.
struct Counted {
  Section section = Section::data;
  bool is_in_step = false;  // in Phase::step
  bool operator==(const Counted&) const = default;
};

/// Takes the time of sections on a device which works behind the host: there a section lasts from
/// when the device is done with what came before it until it is done with the section. What the
/// host waits for while the device has work costs nothing then. On any thread, at once.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  /// Marks where a section begins. The number is for end().
  virtual std::uint64_t begin() = 0;
  virtual void end(std::uint64_t begun, Counted counted) = 0;
  struct Took {
    Counted counted;
    double seconds = 0;
  };
  /// The sections that the device has ended since the last call.
  virtual std::vector<Took> take_ended() = 0;
};

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
    Scope(PhaseClock& clock, Section section)
        : clock_(clock), section_(section), on_device_(clock.begin_on_device()) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { clock_.leave(*this); }

   private:
    friend class PhaseClock;
    PhaseClock& clock_;
    Section section_;
    std::optional<std::uint64_t> on_device_;
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
  /// From now on sections are timed by it; null: by the host. In no section.
  void time_by(DeviceTimer* timer) { timer_ = timer; }

  Seen seen() const;

 private:
  friend class Scope;
  std::optional<std::uint64_t> begin_on_device();
  void leave(const Scope& scope);
  void count_ended(DeviceTimer& timer);
  void add(Counted counted, double seconds);
  void note_move() { moved_at_ = std::chrono::steady_clock::now(); }

  std::atomic<DeviceTimer*> timer_ = nullptr;
  mutable std::mutex mutex_;  // guards the rest
  Seen seen_;
  std::function<DeviceCollectives()> device_;
  std::chrono::steady_clock::time_point moved_at_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point entered_at_ = moved_at_;  // the phase
};

}  // namespace tj::trainer
