#include "trainer/launch/supervisor.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <set>
#include <utility>

#include "contract/names.h"
#include "trainer/launch/control_groups.h"
#include "trainer/launch/descendants.h"
#include "trainer/launch/spawn.h"
#include "trainer/process/lines.h"
#include "trainer/process/process_state.h"

namespace tj::trainer {
namespace {
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookForFrozenEvery{1000};

class Supervisor {
 public:
  Supervisor(const SuperviseRequest& request, SignalQueue& signals)
      : request_(request), signals_(signals) {}

  LaunchEnd run() {
    adopt_orphans();
    start_all();
    while (reap()) {
      advance(Clock::now());
      if (stage_ == Stage::given_up) break;
      wait_for_events();
    }
    drain_output();
    return std::move(end_);
  }

 private:
  enum class Stage { running, stopping, killing, given_up };
  struct Worker {
    ProcessEnv env;
    pid_t pid = 0;
    bool alive = true;
    std::optional<Clock::time_point> stopped_at = {};  // by a signal, as we first saw it
    std::string cause = {};                            // why we killed it
  };

  void start_all();
  bool reap();
  void note_end(Worker& worker, int wait_status);
  void advance(Clock::time_point now);
  void kill_frozen(Clock::time_point now);
  void begin_stop(int signal, Clock::time_point now);
  void begin_kill(Clock::time_point now);
  void signal_workers(int signal);
  void signal_strays();
  void wait_for_events();
  void handle_signals();
  void drain_output();
  int poll_timeout_ms() const;
  bool any_alive() const { return std::ranges::any_of(workers_, &Worker::alive); }
  bool is_worker(pid_t pid) const {
    return std::ranges::any_of(workers_, [&](const Worker& w) { return w.alive && w.pid == pid; });
  }

  const SuperviseRequest& request_;
  SignalQueue& signals_;
  std::vector<Worker> workers_;
  LineRelay out_{STDOUT_FILENO, &request_.node_log};
  LineRelay err_{STDERR_FILENO, &request_.node_log};
  Stage stage_ = Stage::running;
  Clock::time_point deadline_;      // of the stages after running
  std::set<pid_t> asked_groups_;    // process groups that got a stop signal as a whole
  std::set<pid_t> asked_strays_;    // processes that got one alone
  bool strays_may_be_new_ = false;  // a process ended, so its children may be ours now
  const long long kills_before_ = out_of_memory_kills();
  LaunchEnd end_;
};

void Supervisor::start_all() {
  const bool is_alone = request_.plan.processes.size() == 1;
  const bool capture = !is_alone || request_.node_log;
  for (const ProcessEnv& process : request_.plan.processes) {
    SpawnRequest request{.command = request_.command,
                         .env = child_env(request_.plan, process),
                         .capture_output = capture};
    request.env.push_back({names::kEnvTerminationLog, request_.words.path_of(process.local_rank)});
    auto spawned = spawn(request);
    if (!spawned) {
      end_.start_error = spawned.error();
      return;
    }
    workers_.push_back({process, spawned->pid, true});
    if (!capture) continue;
    const std::string prefix = is_alone ? "" : "[rank " + std::to_string(process.rank) + "] ";
    out_.add(std::move(spawned->out), prefix);
    err_.add(std::move(spawned->err), prefix);
  }
}

/// Takes the exit codes of all that have ended, orphans included. False when no process is left.
bool Supervisor::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0) return errno == EINTR;
    strays_may_be_new_ = true;
    const auto ended = std::ranges::find_if(
        workers_, [&](const Worker& worker) { return worker.alive && worker.pid == pid; });
    if (ended != workers_.end()) note_end(*ended, status);
  }
}

void Supervisor::note_end(Worker& worker, int wait_status) {
  worker.alive = false;
  const int code = exit_code_of(wait_status);
  if (code == exit_code::kSignalBase + SIGKILL && worker.cause.empty() &&
      out_of_memory_kills() > kills_before_)
    worker.cause = "the kernel killed it: its control group is out of memory";
  const ProcessEnd end{.env = worker.env,
                       .pid = worker.pid,
                       .exit_code = code,
                       .stopped_by_us = stage_ != Stage::running && code > exit_code::kSignalBase,
                       .cause = worker.cause};
  if (code == exit_code::kDone) return;
  if (!end_.blamed || blames_later(*end_.blamed, end)) end_.blamed = end;
}

void Supervisor::advance(Clock::time_point now) {
  const bool over = end_.blamed || end_.start_error || !any_alive();
  if (stage_ == Stage::running) kill_frozen(now);
  if (stage_ == Stage::running && over) begin_stop(SIGTERM, now);
  if (stage_ == Stage::stopping && now >= deadline_) begin_kill(now);
  if (stage_ == Stage::killing && now >= deadline_) {
    launcher_says("a process does not end even by SIGKILL; leaving it behind");
    stage_ = Stage::given_up;
  }
  if (stage_ != Stage::running && std::exchange(strays_may_be_new_, false)) signal_strays();
}

/// A stopped process ends by nothing but SIGKILL or SIGCONT, and no library of its job would notice
/// it in less than minutes.
void Supervisor::kill_frozen(Clock::time_point now) {
  if (request_.frozen.count() == 0) return;
  for (Worker& worker : workers_) {
    if (!worker.alive) continue;
    if (process_state(worker.pid) != 'T') {
      worker.stopped_at.reset();
      continue;
    }
    if (!worker.stopped_at) worker.stopped_at = now;
    if (now - *worker.stopped_at < request_.frozen || !worker.cause.empty()) continue;
    worker.cause = "a signal (SIGSTOP) had stopped it for " +
                   std::to_string(request_.frozen.count()) + " s, so that it was killed";
    ::kill(-worker.pid, SIGKILL);
  }
}

void Supervisor::begin_stop(int signal, Clock::time_point now) {
  stage_ = Stage::stopping;
  deadline_ = now + request_.grace;
  strays_may_be_new_ = true;
  signal_workers(signal);
}

void Supervisor::begin_kill(Clock::time_point now) {
  stage_ = Stage::killing;
  deadline_ = now + kKillWaitMax;
  strays_may_be_new_ = true;
  std::string ranks;
  for (const Worker& worker : workers_) {
    if (worker.alive) ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(worker.env.rank);
  }
  signal_workers(SIGKILL);
  launcher_says((ranks.empty() ? "a left-over process" : ranks) + " did not end within " +
                std::to_string(request_.grace.count()) + " s of being asked to; sent SIGKILL");
}

void Supervisor::signal_workers(int signal) {
  for (const Worker& worker : workers_) {
    if (!worker.alive) continue;
    ::kill(-worker.pid, signal);
    if (stage_ != Stage::running) asked_groups_.insert(worker.pid);
  }
}

/// What workers left behind. A process that was asked with its group is not asked twice: a second
/// SIGTERM makes some programs give up saving.
void Supervisor::signal_strays() {
  for (const ChildProcess& child : child_processes()) {
    if (child.zombie || is_worker(child.pid)) continue;
    if (stage_ == Stage::killing) {
      ::kill(child.pid, SIGKILL);
      continue;
    }
    if (asked_groups_.contains(child.group)) continue;
    if (asked_strays_.insert(child.pid).second) ::kill(child.pid, SIGTERM);
  }
}

int Supervisor::poll_timeout_ms() const {
  if (stage_ == Stage::running)
    return request_.frozen.count() == 0 ? -1 : static_cast<int>(kLookForFrozenEvery.count());
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(0, left.count()));
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> polls{{.fd = signals_.fd(), .events = POLLIN, .revents = 0}};
  out_.add_polls(polls);
  err_.add_polls(polls);
  if (::poll(polls.data(), polls.size(), poll_timeout_ms()) <= 0) return;
  out_.handle(polls);
  err_.handle(polls);
  handle_signals();
}

void Supervisor::handle_signals() {
  for (const int signal : signals_.read_all()) {
    if (signal == SIGCHLD) continue;  // reap() is called in each round
    if (!asks_to_stop(signal)) {
      signal_workers(signal);
      continue;
    }
    if (!end_.stop_signal) end_.stop_signal = signal;
    if (stage_ == Stage::running) {
      begin_stop(signal, Clock::now());
    } else {
      signal_workers(signal);  // a second Ctrl-C: the program decides what it means
    }
  }
}

void Supervisor::drain_output() {
  out_.finish_sources();
  err_.finish_sources();
  const auto deadline = Clock::now() + kDrainWaitMax;
  while (!(out_.done() && err_.done()) && Clock::now() < deadline) {
    std::vector<pollfd> polls;
    out_.add_polls(polls);
    err_.add_polls(polls);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (::poll(polls.data(), polls.size(), static_cast<int>(std::max<long>(0, left))) <= 0)
      continue;
    out_.handle(polls);
    err_.handle(polls);
  }
}

}  // namespace

LaunchEnd supervise(const SuperviseRequest& request, SignalQueue& signals) {
  return Supervisor(request, signals).run();
}

void launcher_says(const std::string& line) { say_error("trainer launch: " + line); }

}  // namespace tj::trainer
