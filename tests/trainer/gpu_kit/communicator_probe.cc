// Calls each collective of the communicator at world size 1, on the GPU where there is one: the
// plug-in is loaded, NCCL starts, and a sum of one rank must be what it was. `trainer train` would
// leave all of this out for a single rank. Prints "ok WHAT: ..." or "FAIL WHAT: ..." lines.
#include <torch/types.h>

#include <torch/version.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "trainer/comm/c10d_communicator.h"
#include "trainer/launch/host.h"
#include "trainer/values/failure.h"
#include "trainer/values/process_env.h"
#include "trainer/workload/initial_tensor.h"

namespace tj::trainer {
namespace {

void say(bool is_good, const std::string& what, const std::string& result) {
  std::printf("%s %s: %s\n", is_good ? "ok" : "FAIL", what.c_str(), result.c_str());
}

void probe(const std::string& what, const at::Tensor& expected,
           const std::function<at::Tensor()>& collective) {
  try {
    say(at::equal(collective(), expected), what, "the values of one rank");
  } catch (const std::exception& failure) {
    say(false, what, cause_of(failure));
  }
}

std::unique_ptr<Communicator> join_alone(const Accelerator& accelerator, PhaseClock& clock) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  Peers peers(store, 0, 1, std::make_shared<KnownPeerFailure>(0, 1));
  peers.introduce({.node = "here",
                   .address = "127.0.0.1",
                   .device = accelerator.gpu() ? "cuda" : "cpu",
                   .transport = "",
                   .why = accelerator.text});
  peers.learn();
  return make_c10d_communicator(store, std::move(peers),
                                {.clock = &clock,
                                 .rank = 0,
                                 .world_size = 1,
                                 .address = "127.0.0.1",
                                 .accelerator = accelerator});
}

void probe_all(Communicator& communicator, at::Device device) {
  const auto values = torch::arange(1024, at::TensorOptions().dtype(at::kFloat).device(device));
  const auto where = device.is_cuda() ? std::string("NCCL") : std::string("Gloo");
  probe(where + ", world size 1, all-reduce", values, [&] {
    auto tensor = values.clone();
    communicator.all_reduce_sum(tensor);
    return tensor;
  });
  probe(where + ", world size 1, broadcast", values, [&] {
    auto tensor = values.clone();
    communicator.broadcast(tensor, 0);
    return tensor;
  });
  probe(where + ", world size 1, all-gather", values, [&] {
    auto whole = torch::zeros_like(values);
    communicator.all_gather(values, whole)->wait();
    return whole;
  });
  probe(where + ", world size 1, reduce-scatter", values, [&] {
    auto mine = torch::zeros_like(values);
    communicator.reduce_scatter(values, mine)->wait();
    return mine;
  });
}

int run() {
  const auto accelerator =
      find_accelerator({.visible_gpus = visible_gpus(process_env),
                        .place = {.plugin = default_nccl_plugin(), .libtorch = TORCH_VERSION}});
  if (!accelerator) {
    say(false, "the accelerator", accelerator.error().message);
    return 0;
  }
  say(true, "device", accelerator->text);
  PhaseClock clock;
  try {
    const auto communicator = join_alone(*accelerator, clock);
    probe_all(*communicator, device_of(accelerator->gpu()));
  } catch (const std::exception& failure) {
    say(false, "the communicator", cause_of(failure));
  }
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main() {
  const int code = tj::trainer::run();
  std::fflush(stdout);
  std::quick_exit(code);  // as the trainer does: libraries' threads are not taken down one by one
}
