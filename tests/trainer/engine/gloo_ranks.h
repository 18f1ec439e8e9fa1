// Ranks as threads of one process, with real connections between them.
#pragma once
#include <torch/torch.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "trainer/comm/gloo_communicator.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

inline std::unique_ptr<Communicator> join_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int world_size, PhaseClock& clock) {
  Peers peers(store, rank, world_size, std::make_shared<KnownLoss>(rank, world_size));
  peers.introduce(
      {.node = "n", .address = "127.0.0.1", .device = "cpu", .transport = "", .why = ""});
  peers.learn();
  return make_gloo_communicator(
      store, std::move(peers),
      {.clock = &clock, .rank = rank, .world_size = world_size, .address = "127.0.0.1"});
}

/// Calls `work` once for each rank, each in a thread of its own. The first exception goes on.
inline void on_gloo_ranks(int world_size,
                          const std::function<void(Communicator&, PhaseClock&)>& work) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world_size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      try {
        PhaseClock clock;
        const auto communicator = world_size == 1 ? make_single_communicator()
                                                  : join_gloo(store, rank, world_size, clock);
        work(*communicator, clock);
      } catch (...) {  // goes on in the test's thread
        failures[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  }
  threads.clear();  // joins
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tj::trainer
