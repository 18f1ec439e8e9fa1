// How ranks meet: rank 0 opens the store at MASTER_PORT, all report there, and nobody goes on
// before all have. Every wait has the one deadline, and its message says for whom it waited.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <variant>

#include "trainer/comm/communicator.h"
#include "trainer/launch/process_env.h"
#include "trainer/train/failure.h"

namespace tj::trainer {

struct Joined {
  std::unique_ptr<Communicator> communicator;
  std::string interface_address;  // of this rank, where the others connect to
};

/// One rank alone needs no network.
std::variant<Joined, Failure> rendezvous(const ProcessEnv& env, std::chrono::milliseconds timeout);

}  // namespace tj::trainer
