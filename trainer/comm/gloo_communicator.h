// Collectives over TCP with Gloo, and data-parallel gradients with c10d's Reducer.
#pragma once
#include <memory>
#include <string>

#include "trainer/comm/communicator.h"
#include "trainer/comm/peers.h"

namespace tj::trainer {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string address;  // numeric, of this rank: where the others connect to
};

/// All ranks call it together; each connects to each. Throws what c10d throws.
std::unique_ptr<Communicator> make_gloo_communicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                     Peers peers, const GlooOptions& options);

}  // namespace tj::trainer
