// The communicator of several ranks is PyTorch's c10d: its ProcessGroupGloo, over TCP, carries the
// tensors of the CPU; its ProcessGroupNCCL, which the plug-in brings (nccl_plugin/), those of a
// GPU; its Reducer, that of DistributedDataParallel, the gradients, over whichever they need.
// All-gather, reduce-scatter and exchange on the CPU are our own sends and receives over Gloo.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/accelerator.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/peers.h"
#include "trainer/watch/phase_clock.h"

namespace tj::trainer {

struct C10dOptions {
  PhaseClock* clock = nullptr;  // of this rank: hears of each collective; never null
  int rank = 0;
  int world_size = 1;
  std::string address;                       // numeric, of this rank: where the others connect to
  std::vector<std::string> interfaces = {};  // chosen by the user, instead of that of the address
  Accelerator accelerator = {};
};

/// All ranks call it together; each connects to each. All have a GPU, or none has. Throws what c10d
/// throws, and NcclStartError.
std::unique_ptr<Communicator> make_c10d_communicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                     Peers peers, const C10dOptions& options);

}  // namespace tj::trainer
