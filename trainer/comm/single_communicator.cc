// One rank: every collective is already done, or a copy.
#include <torch/types.h>

#include "trainer/comm/communicator.h"

namespace tj::trainer {
namespace {

class NoSync final : public GradientSync {
 public:
  void before_last_pass() override {}
  void before_backward(const at::Tensor&) override {}
};

class Done final : public Pending {
 public:
  void wait() override {}
};

std::unique_ptr<Pending> copied(const at::Tensor& from, at::Tensor& to) {
  const at::NoGradGuard no_grad;
  if (!to.is_alias_of(from)) to.copy_(from);
  return std::make_unique<Done>();
}

class SingleCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  std::string named(int rank) const override { return "rank " + std::to_string(rank); }
  void all_reduce_sum(at::Tensor&) override {}
  std::unique_ptr<Pending> begin_all_reduce_sum(at::Tensor&) override {
    return std::make_unique<Done>();
  }
  void broadcast(at::Tensor&, int) override {}
  void exchange(const at::Tensor&, at::Tensor&, int) override {}  // there is no peer
  std::unique_ptr<Pending> all_gather(const at::Tensor& mine, at::Tensor& whole) override {
    return copied(mine, whole);
  }
  std::unique_ptr<Pending> reduce_scatter(const at::Tensor& whole, at::Tensor& mine) override {
    return copied(whole, mine);
  }
  CommVolume volume() const override { return {}; }
  std::unique_ptr<Communicator> split(std::span<const int>) override {
    return std::make_unique<SingleCommunicator>();
  }
  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>&,
                                            std::span<const std::string>,
                                            const SyncOptions&) override {
    return std::make_unique<NoSync>();
  }
  void check_peers(const std::exception&) override {}
  void finish() noexcept override {}
};

}  // namespace

std::unique_ptr<Communicator> make_single_communicator() {
  return std::make_unique<SingleCommunicator>();
}

}  // namespace tj::trainer
