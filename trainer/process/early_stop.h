// SIGTERM and SIGINT before training: there is nothing to save, so the process says so and ends at
// once, whatever it waits for.
#pragma once
#include <functional>
#include <string>

#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"

namespace tj::trainer {

/// From here until catch_stop_signals() (stop_request.h) the first of them ends the process with
/// exit code 75.
void end_at_stop_signals();
/// Who says so in the last words; before it is known, nobody.
void introduce_for_stop(const ProcessEnv& env);

/// While it lives, a process that ends so tells it by `tell` first, on another thread, and does not
/// wait for that beyond a bound.
class EarlyStopHandler {
 public:
  explicit EarlyStopHandler(std::function<void(const Failure&)> tell);
  ~EarlyStopHandler();
  EarlyStopHandler(const EarlyStopHandler&) = delete;
  EarlyStopHandler& operator=(const EarlyStopHandler&) = delete;
};

/// "asked to stop by signal 15"
std::string asked_by(int signal);
/// How a run ends that was asked to stop before its first step; `asked`: who was, by what.
Failure interrupted_early(const std::string& asked);

}  // namespace tj::trainer
