#include "trainer/process/early_stop.h"

#include <semaphore.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "trainer/process/deadline_guard.h"
#include "trainer/process/last_words.h"
#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {

volatile std::sig_atomic_t caught = 0;
sem_t arrived;  // a handler may post it

constexpr std::chrono::milliseconds kTellMax{4000};

struct Identity {
  std::mutex mutex;  // guards the rest
  int rank = 0;
  int attempt = 0;
  std::function<void(const Failure&)> tell;
};

Identity& identity() {
  static auto* const instance = new Identity;  // outlives the thread that reads it
  return *instance;
}

void notice(int signal) {
  caught = signal;
  ::sem_post(&arrived);
}

void tell(const Failure& failure) {
  try {
    if (identity().tell) identity().tell(failure);
  } catch (const std::exception&) {
    return;  // who would hear of it is gone
  }
}

[[noreturn]] void end_when_asked() {
  while (::sem_wait(&arrived) != 0) {}
  const Failure failure = interrupted_early(asked_by(caught));
  // To the end: what tells must stay.
  const std::scoped_lock lock(identity().mutex);
  write_last_words({.reason = failure.reason,
                    .message = failure.message,
                    .rank = identity().rank,
                    .step = {},
                    .attempt = identity().attempt});
  say_error("trainer: " + failure.message);
  const DeadlineGuard guard(std::chrono::steady_clock::now() + kTellMax,
                            [&failure] { ::_exit(failure.exit_code); });
  tell(failure);
  ::_exit(failure.exit_code);
}

}  // namespace

void end_at_stop_signals() {
  ::sem_init(&arrived, /*pshared=*/0, /*value=*/0);
  std::thread(end_when_asked).detach();  // for as long as the process lives
  struct sigaction action {};
  action.sa_handler = notice;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

void introduce_for_stop(const ProcessEnv& env) {
  const std::scoped_lock lock(identity().mutex);
  identity().rank = env.rank;
  identity().attempt = env.attempt;
}

EarlyStopHandler::EarlyStopHandler(std::function<void(const Failure&)> tell) {
  const std::scoped_lock lock(identity().mutex);
  identity().tell = std::move(tell);
}

EarlyStopHandler::~EarlyStopHandler() {
  const std::scoped_lock lock(identity().mutex);
  identity().tell = nullptr;
}

std::string asked_by(int signal) { return "asked to stop by signal " + std::to_string(signal); }

Failure interrupted_early(const std::string& asked) {
  return {.exit_code = exit_code::kInterrupted,
          .reason = "Interrupted",
          .message = asked + " before the first step; there is nothing to save"};
}

}  // namespace tj::trainer
