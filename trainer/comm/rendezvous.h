// How ranks meet: rank 0 opens the store at MASTER_PORT, all report there, and nobody goes on
// before all have. Every wait has the one deadline, and its message says for whom it waited.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "trainer/comm/accelerator.h"
#include "trainer/comm/communicator.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"
#include "trainer/values/settings.h"
#include "trainer/watch/watchdog.h"

namespace tj::trainer {

struct Joined {
  std::unique_ptr<Communicator> communicator;
  std::string collectives;       // one sentence: what carries them, and why
  std::vector<Setting> network;  // rows of the start-up table
  std::unique_ptr<Watchdog> watchdog;
};

struct MeetingOptions {
  std::chrono::milliseconds timeout;
  /// Called once it is known what will carry the collectives, before the others are waited for.
  std::function<void(const std::string& collectives)> network_chosen = {};
};

/// One rank alone needs no network. Sets the variables of choose_network() for NCCL. The clock of
/// `watch` must outlive the communicator, whose collectives it hears of.
std::variant<Joined, Failure> rendezvous(const ProcessEnv& env, const Accelerator& accelerator,
                                         const WatchRequest& watch, const MeetingOptions& options);

}  // namespace tj::trainer
