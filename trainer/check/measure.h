// Measures the links between ranks with the communicator that training uses: latency, clocks,
// bandwidth of neighbours, and the all-reduce of one bucket of gradients.
#pragma once
#include "trainer/check/links.h"
#include "trainer/comm/accelerator.h"
#include "trainer/comm/communicator.h"

namespace tj::trainer {

/// Collective, a few seconds. Fills in what rank 0 knows: ranks, pairs, the all-reduce. Workers and
/// ranks_per_worker must be set. Throws what the communicator throws.
void measure_links(Communicator& communicator, const Accelerator& accelerator, LinkFacts& facts);

}  // namespace tj::trainer
