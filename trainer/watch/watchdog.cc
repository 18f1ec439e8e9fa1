#include "trainer/watch/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>
#include <thread>

#include "trainer/process/deadline_guard.h"
#include "trainer/process/ending.h"
#include "trainer/process/lines.h"
#include "trainer/process/process_state.h"
#include "trainer/watch/judge.h"
#include "trainer/watch/stack.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr milliseconds kLookEvery{250};
constexpr std::int64_t kLooksAtMaster = 4;  // its sign is read in every fourth look: all ranks ask
// The training thread often notices a lost peer by itself, and knows the step better.
constexpr milliseconds kOwnEndMax{500};
constexpr milliseconds kTellMax = kHearMax + milliseconds(1000);  // a frozen store never answers
constexpr milliseconds kWriteDownMax{250};
constexpr milliseconds kLastWordsMax{500};
constexpr milliseconds kStackMax{500};
constexpr milliseconds kStackAnswerMax{1500};  // of another rank, that looks each kLookEvery
constexpr int kStackFramesTold = 6;
// A thread that waits for a frozen rank 0 in the store does not end; the process is about to.
constexpr milliseconds kThreadsEndMax{1000};
constexpr double kStalledAfterSeconds = 2;    // of silence: shown in the progress document
constexpr std::int64_t kStragglerSteps = 20;  // of a window
constexpr double kStragglerTellSeconds = 60;  // the same one is named again after so long

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string sign_text(const Seen& seen, std::int64_t number) {
  const nlohmann::json document = {
      {"number", number},
      {"phase", to_string(seen.phase)},
      {"still", seen.still_seconds},
      {"step", seen.step},
      {"collectives", seen.collectives},
      {"collective", seen.collective},
      {"in_collective", seen.is_in_collective},
      {"gradients", seen.gradients},
      {"waits_for", seen.waits_for},
      {"device_begun", seen.device.begun},
      {"device_ended", seen.device.ended},
      {"data", seen.data_seconds},
      {"forward", seen.forward_seconds},
  };
  return document.dump();
}

/// False when whoever reads our output has stopped: the watchdog must not wait for it.
bool takes_a_line(int descriptor) {
  pollfd poll{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&poll, 1, /*timeout=*/0) == 1 && (poll.revents & POLLOUT) != 0;
}

double seconds_since(steady_clock::time_point then) {
  return std::chrono::duration<double>(steady_clock::now() - then).count();
}

/// What rank 0 keeps of one rank.
struct Watched {
  std::int64_t number = -1;  // of its last sign
  steady_clock::time_point heard_at = steady_clock::now();
  Seen seen;
  Seen window;  // at the beginning of the straggler's window
};

}  // namespace

class Watchdog::Impl {
 public:
  Impl(const ProcessEnv& env, const WatchRequest& request, c10d::Store& store,
       std::vector<Peer> peers, std::shared_ptr<KnownPeerFailure> peer_failure)
      : env_(env),
        clock_(request.clock),
        limits_(request.limits),
        write_down_(request.write_down),
        peers_(std::move(peers)),
        peer_failure_(std::move(peer_failure)),
        watched_(peers_.size()),
        training_thread_(::pthread_self()),
        store_(store.clone()) {
    prepare_stacks();
    looks_at_ = steady_clock::now();
    start([this] { look_until_stopped(); });
    if (env_.rank != 0) start([this] { guard_store(); });
  }

  /// False when a thread did not come back: then this object must stay.
  bool end_threads() {
    stop();
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kThreadsEndMax, [this] { return threads_ == 0; });
  }

  void stop() noexcept {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    wake_.notify_all();
  }

  void tell(const Failure& failure) noexcept {
    is_telling_ = true;
    try {
      const DeadlineGuard guard(steady_clock::now() + kTellMax, [&] { end_with_words(failure); });
      peer_failure_->settle(
          *store_, {.rank = env_.rank,
                    .reason = failure.reason,
                    .message = named(env_.rank) + " failed first, in " + phase_text(clock_.seen()) +
                               ": " + failure.message});
      peer_failure_->acknowledge(*store_);
    } catch (const std::exception&) {
      return;  // no store, nobody to tell
    }
  }

  std::vector<StalledRank> stalled() const {
    const std::scoped_lock lock(mutex_);
    return stalled_;
  }

 private:
  std::string named(int rank) const {
    return trainer::named(rank, peers_[static_cast<std::size_t>(rank)].node);
  }

  template <typename Work>
  void start(Work work) {
    ++threads_;
    std::thread([this, work] {
      work();
      const std::scoped_lock lock(mutex_);
      --threads_;
      wake_.notify_all();
    }).detach();
  }

  /// True when stopped meanwhile.
  bool pause(milliseconds how_long) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, how_long, [this] { return is_stopped_; });
  }

  void look_until_stopped() {
    try {
      while (!pause(kLookEvery)) {
        look();
        looks_at_ = steady_clock::now();
      }
      publish();  // that it has ended: silence is right from here on
    } catch (const std::exception&) {
      // Only the store throws here. Rank 0 was free to close it once any thread had heard why.
      const auto settled = peer_failure_->known();
      end_after_own(
          settled ? *settled
                  : PeerFailure{.message = named(0) + " was lost, in " + phase_text(clock_.seen()) +
                                           ", and the store with it"},
          steady_clock::now());
    }
  }

  void publish() {
    store_->set("watch/" + rank_text(), bytes_of(sign_text(clock_.seen(), ++number_)));
  }

  void look() {
    publish();
    if (is_telling_) return;  // the training thread ends, with a cause of its own
    if (const auto settled = peer_failure_->ask(*store_)) {
      const auto heard_at = steady_clock::now();
      peer_failure_->acknowledge(*store_);
      end_after_own(*settled, heard_at);
      return;
    }
    if (store_->check({"watch/stack-of"}) && store_->get_to_str("watch/stack-of") == rank_text())
      store_->set("watch/stack", bytes_of(own_stack()));
    if (env_.rank == 0) {
      judge_all();
    } else if (number_ % kLooksAtMaster == 0) {
      const Sign master = read_sign(0);
      const std::scoped_lock lock(mutex_);
      master_seen_ = master.seen;
    }
  }

  std::string rank_text() const { return std::to_string(env_.rank); }

  void judge_all() {
    std::vector<Sign> signs;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) signs.push_back(read_sign(rank));
    note_stalled(signs);
    tell_straggler(signs);
    auto accused = judge(signs, limits_);
    if (!accused) return;
    const std::string more =
        accused->is_silent ? state_of(accused->rank) : stack_told(accused->rank);
    peer_failure_->settle(*store_, {.rank = accused->rank,
                                    .reason = "Hung",
                                    .message = accused->sentence + more,
                                    .absent = accused->is_silent ? accused->rank : -1});
  }

  Sign read_sign(std::size_t rank) {
    Watched& watched = watched_[rank];
    const std::string key = "watch/" + std::to_string(rank);
    if (store_->check({key})) {
      const auto document = nlohmann::json::parse(store_->get_to_str(key));
      if (const auto number = document.at("number").get<std::int64_t>(); number != watched.number) {
        watched.number = number;
        watched.heard_at = steady_clock::now();
        watched.seen = {.phase = phase_from(document.at("phase").get<std::string>()),
                        .still_seconds = document.at("still").get<double>(),
                        .step = document.at("step").get<std::int64_t>(),
                        .collectives = document.at("collectives").get<std::int64_t>(),
                        .collective = document.at("collective").get<std::string>(),
                        .is_in_collective = document.at("in_collective").get<bool>(),
                        .gradients = document.at("gradients").get<std::int64_t>(),
                        .waits_for = document.at("waits_for").get<std::string>(),
                        .device = {.begun = document.at("device_begun").get<std::int64_t>(),
                                   .ended = document.at("device_ended").get<std::int64_t>()},
                        .data_seconds = document.at("data").get<double>(),
                        .forward_seconds = document.at("forward").get<double>()};
      }
    }
    return {.rank = static_cast<int>(rank),
            .node = peers_[rank].node,
            .seen = watched.seen,
            .silent_seconds = seconds_since(watched.heard_at)};
  }

  void note_stalled(std::span<const Sign> signs) {
    std::vector<StalledRank> stalled;
    for (const Sign& sign : signs) {
      if (sign.silent_seconds < kStalledAfterSeconds && !stands_still(sign, limits_)) continue;
      stalled.push_back({.rank = sign.rank,
                         .node = sign.node,
                         .phase = to_string(sign.seen.phase),
                         .seconds = std::max(sign.silent_seconds, sign.seen.still_seconds)});
    }
    const std::scoped_lock lock(mutex_);
    stalled_ = std::move(stalled);
  }

  void tell_straggler(std::span<const Sign> signs) {
    const Sign& own = signs.front();
    const std::int64_t steps = own.seen.step - watched_.front().window.step;
    if (steps < kStragglerSteps) return;
    const double step_seconds = seconds_since(window_at_) / static_cast<double>(steps);
    std::vector<WorkDone> work;
    for (const Sign& sign : signs) {
      Watched& watched = watched_[static_cast<std::size_t>(sign.rank)];
      const auto done = std::max<std::int64_t>(1, sign.seen.step - watched.window.step);
      const auto per_step = [&](double now, double then) {
        return (now - then) / static_cast<double>(done);
      };
      work.push_back(
          {.rank = sign.rank,
           .node = sign.node,
           .data_seconds = per_step(sign.seen.data_seconds, watched.window.data_seconds),
           .forward_seconds = per_step(sign.seen.forward_seconds, watched.window.forward_seconds)});
      watched.window = sign.seen;
    }
    window_at_ = steady_clock::now();
    const auto slow = find_straggler(work, step_seconds);
    // Two windows in a row: one alone may be a page fault or a neighbour.
    const bool is_known = slow && slow->rank == slow_rank_;
    slow_rank_ = slow ? slow->rank : -1;
    if (!is_known || (told_slow_ == slow_rank_ && seconds_since(told_at_) < kStragglerTellSeconds))
      return;
    told_slow_ = slow_rank_;
    told_at_ = steady_clock::now();
    if (takes_a_line(STDOUT_FILENO)) say(slow->sentence);
  }

  /// Of a process that says nothing, seen from the same machine.
  std::string state_of(int rank) const {
    const int pid = peers_[static_cast<std::size_t>(rank)].pid;
    if (pid == 0) return "";
    const auto state = process_state(pid);
    const std::string process = "; its process " + std::to_string(pid);
    if (!state || *state == 'Z') return process + " has ended";
    if (*state == 'T') return process + " is stopped by a signal (SIGSTOP)";
    if (*state == 'D') return process + " waits in the kernel, for a disk or the network";
    return "";
  }

  std::string own_stack() {
    const auto frames = stack_of(training_thread_, kStackMax);
    if (frames.empty()) return "";
    std::string text = "trainer: rank " + rank_text() + ": stack of the training thread:";
    for (const auto& frame : frames) text += "\n  " + frame;
    if (takes_a_line(STDERR_FILENO)) say_error(text);
    std::string told;
    for (int frame = 0; frame < std::min<int>(kStackFramesTold, static_cast<int>(frames.size()));
         ++frame)
      told += (frame == 0 ? "" : " < ") + frames[static_cast<std::size_t>(frame)];
    return told;
  }

  /// "; it is in read < std::getline < ...", of any rank.
  std::string stack_told(int rank) {
    if (rank < 0) return "";
    std::string told;
    if (rank == env_.rank) {
      told = own_stack();
    } else {
      store_->set("watch/stack-of", bytes_of(std::to_string(rank)));
      const auto end = steady_clock::now() + kStackAnswerMax;
      while (!store_->check({"watch/stack"}) && steady_clock::now() < end &&
             !pause(kLookEvery / 10)) {}
      if (store_->check({"watch/stack"})) told = store_->get_to_str("watch/stack");
    }
    return told.empty() ? "; its thread does not tell where it is" : "; it is in " + told;
  }

  /// A frozen rank 0 takes the store with it: a question there then never returns.
  void guard_store() {
    if (limits_.silence == 0) return;
    while (!pause(kLookEvery)) {
      if (seconds_since(looks_at_) < limits_.silence) continue;
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%.0f s", limits_.silence);
      end_now({.rank = 0,
               .reason = "Hung",
               .message = named(0) + " is frozen or unreachable: its store does not answer for " +
                          seconds + " (limit silence=" + seconds + ")" + last_seen_text(master()) +
                          state_of(0)});
    }
  }

  Seen master() const {
    const std::scoped_lock lock(mutex_);
    return master_seen_;
  }

  void end_after_own(const PeerFailure& settled, steady_clock::time_point heard_at) {
    const auto left = heard_at + kOwnEndMax - steady_clock::now();
    if (!pause(std::chrono::ceil<milliseconds>(left))) end_now(settled);
  }

  void end_now(const PeerFailure& settled) {
    const bool is_own = settled.rank == env_.rank;
    end_with_words({.exit_code = is_own ? exit_code::kInternal : exit_code::kPeerLost,
                    .reason = is_own ? settled.reason : "PeerLost",
                    .message = settled.message});
  }

  void end_with_words(const Failure& failure) {
    // Held to the end: the training thread must not say its own last words meanwhile.
    const std::scoped_lock lock(mutex_);
    if (is_stopped_) return;
    write_down(failure);
    // Nor does the end wait for a reader of the last words.
    const DeadlineGuard guard(steady_clock::now() + kLastWordsMax,
                              [&failure] { ::_exit(failure.exit_code); });
    ::_exit(end_with(failure, env_, clock_.seen().step));
  }

  /// The training thread may hold, for ever, what writing needs.
  void write_down(const Failure& failure) {
    const auto written = std::make_shared<std::promise<void>>();
    const auto write = [this, failure, written] {
      try {
        write_down_(failure);
      } catch (const std::exception&) {
        // The cause goes on to the last words.
      }
      written->set_value();
    };
    try {
      std::thread(write).detach();
    } catch (const std::system_error&) {
      return;  // no memory is left for a thread; the last words may need none
    }
    static_cast<void>(written->get_future().wait_for(kWriteDownMax));
  }

  const ProcessEnv env_;
  PhaseClock& clock_;
  const Limits limits_;
  const std::function<void(const Failure&)> write_down_;
  const std::vector<Peer> peers_;
  const std::shared_ptr<KnownPeerFailure> peer_failure_;
  std::atomic<bool> is_telling_ = false;
  std::vector<Watched> watched_;  // by rank, the looker's; all on rank 0, elsewhere rank 0 alone
  const pthread_t training_thread_;
  const StorePtr store_;  // a connection of its own: others block in theirs
  std::int64_t number_ = 0;
  steady_clock::time_point window_at_ = steady_clock::now();
  int slow_rank_ = -1;  // of the last window
  int told_slow_ = -1;
  steady_clock::time_point told_at_;
  std::atomic<steady_clock::time_point> looks_at_;  // the last look that came back

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable wake_;
  bool is_stopped_ = false;
  std::vector<StalledRank> stalled_;
  Seen master_seen_;  // as rank 0 last told it; not on rank 0
  int threads_ = 0;   // running
};

Watchdog::Watchdog(const ProcessEnv& env, const WatchRequest& request, c10d::Store& store,
                   std::vector<Peer> peers, std::shared_ptr<KnownPeerFailure> peer_failure)
    : impl_(
          std::make_unique<Impl>(env, request, store, std::move(peers), std::move(peer_failure))) {}
Watchdog::~Watchdog() {
  if (!impl_->end_threads()) static_cast<void>(impl_.release());
}

void Watchdog::tell(const Failure& failure) noexcept { impl_->tell(failure); }
void Watchdog::stop() noexcept { impl_->stop(); }
std::vector<StalledRank> Watchdog::stalled() const { return impl_->stalled(); }

}  // namespace tj::trainer
