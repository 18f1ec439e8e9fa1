// Collectives over c10d: tensors of the CPU with Gloo over TCP, those of a GPU with NCCL through
// the plug-in, and data-parallel gradients with c10d's Reducer over whichever the parameters need.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/accelerator.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/peers.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

struct GlooOptions {
  PhaseClock* clock = nullptr;  // of this rank: hears of each collective; never null
  int rank = 0;
  int world_size = 1;
  std::string address;                       // numeric, of this rank: where the others connect to
  std::vector<std::string> interfaces = {};  // chosen by the user, instead of that of the address
  Accelerator accelerator = {};
};

/// All ranks call it together; each connects to each. All have a GPU, or none has. Throws what c10d
/// throws, and std::runtime_error with NCCL's cause.
std::unique_ptr<Communicator> make_gloo_communicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                     Peers peers, const GlooOptions& options);

}  // namespace tj::trainer
