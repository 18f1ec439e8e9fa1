// Ranks as threads of one process, with real connections between them.
#pragma once
#include <torch/types.h>

#include <functional>
#include <memory>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/trainer/engine/rank_threads.h"
#include "trainer/comm/agreement.h"
#include "trainer/comm/c10d_communicator.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

inline std::unique_ptr<Communicator> join_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int world_size, PhaseClock& clock) {
  Peers peers(store, rank, world_size, std::make_shared<KnownPeerFailure>(rank, world_size));
  peers.introduce(
      {.node = "n", .address = "127.0.0.1", .device = "cpu", .transport = "", .why = ""});
  peers.learn();
  return make_c10d_communicator(
      store, std::move(peers),
      {.clock = &clock, .rank = rank, .world_size = world_size, .address = "127.0.0.1"});
}

/// Calls `work` once for each rank, each in a thread of its own. The first exception goes on.
inline void on_gloo_ranks(int world_size,
                          const std::function<void(Communicator&, PhaseClock&)>& work) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  on_rank_threads(world_size, [&](int rank) {
    PhaseClock clock;
    const auto communicator =
        world_size == 1 ? make_single_communicator() : join_gloo(store, rank, world_size, clock);
    // Work that sends nothing may end while another rank still makes its connections to this one.
    (void)sum_over_ranks(*communicator, {1});
    work(*communicator, clock);
  });
}

}  // namespace tj::trainer
