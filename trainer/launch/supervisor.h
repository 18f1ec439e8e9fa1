// Starts the processes of one worker, passes signals and output on, and does not return before the
// last descendant is gone. One thread, one poll loop. It reports what happened; what is said about
// it is decided in launch.cc.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/launch/failure.h"
#include "trainer/launch/launch_plan.h"
#include "trainer/launch/line_relay.h"
#include "trainer/launch/signals.h"
#include "trainer/launch/word_files.h"

namespace tj::trainer {

inline constexpr std::chrono::seconds kKillWaitMax{
    10};  // from SIGKILL until we give up (a hung driver)
inline constexpr std::chrono::seconds kDrainWaitMax{
    10};  // for a reader of our output that is stuck

struct SuperviseRequest {
  const LaunchPlan& plan;
  const std::vector<std::string>& command;
  std::chrono::seconds grace;   // from SIGTERM to SIGKILL
  std::chrono::seconds frozen;  // until a process that a signal has stopped is killed; 0: never
  const WordFiles& words;
  const LineSink& node_log;  // gets all that the processes print; empty: nothing is kept
};

struct LaunchEnd {
  std::optional<Error> start_error;  // the command could not be started
  std::optional<ProcessEnd> blamed;  // absent: every process ended with 0
  std::optional<int> stop_signal;    // the first signal that asked us to stop
};

LaunchEnd supervise(const SuperviseRequest& request, SignalQueue& signals);

/// One line of the launcher's own, on stderr.
void launcher_says(const std::string& line);

}  // namespace tj::trainer
