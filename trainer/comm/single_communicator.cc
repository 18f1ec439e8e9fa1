// One rank: every collective is already done.
#include "trainer/comm/communicator.h"

namespace tj::trainer {
namespace {

class NoSync final : public GradientSync {
 public:
  void before_last_pass() override {}
};

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void all_reduce_sum(at::Tensor&) override {}
  void broadcast(at::Tensor&, int) override {}
  void exchange(const at::Tensor&, at::Tensor&, int) override {}  // there is no peer
  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>&,
                                            std::span<const std::string>) override {
    return std::make_unique<NoSync>();
  }
  void check_peers(const std::string&) override {}
  void finish() noexcept override {}
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace tj::trainer
