// Ranks that are threads of one process: a Communicator that works, without a network.
#pragma once
#include <torch/types.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "tests/trainer/engine/rank_threads.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/tree_all_reduce.h"

namespace tj::trainer {

constexpr std::chrono::seconds kMailWaitMax{60};

/// What the ranks of one process have sent each other and nobody has taken yet.
class Mailboxes {
 public:
  using Address = std::tuple<int, int, std::int64_t>;  // from, to, collective

  /// Of ranks that were split off, by a name that they have in common.
  Mailboxes& split(const std::string& name) {
    const std::lock_guard lock(mutex_);
    auto& found = splits_[name];
    if (!found) found = std::make_unique<Mailboxes>();
    return *found;
  }

  void put(const Address& address, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    mail_[address].push_back(tensor.clone());
    changed_.notify_all();
  }

  at::Tensor take(const Address& address) {
    std::unique_lock lock(mutex_);
    auto& box = mail_[address];
    TORCH_CHECK(changed_.wait_for(lock, kMailWaitMax, [&] { return !box.empty(); }), "no mail");
    auto tensor = box.front();
    mail_.erase(address);
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Address, std::vector<at::Tensor>> mail_;
  std::map<std::string, std::unique_ptr<Mailboxes>> splits_;
};

/// A rank that is a thread. Gradients of stage 0 it does not synchronise.
class ThreadRank final : public Communicator {
 public:
  ThreadRank(Mailboxes& mailboxes, int rank, int world_size, ThreadRank* split_off = nullptr)
      : mailboxes_(mailboxes), rank_(rank), world_size_(world_size), split_off_(split_off) {}
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::string named(int rank) const override { return "rank " + std::to_string(rank); }

  void exchange(const at::Tensor& out, at::Tensor& in, int peer) override {
    const auto sent = sent_[peer]++;
    const auto received = received_[peer]++;
    mailboxes_.put({rank_, peer, -1 - sent}, out);
    add_sent(out.numel());
    if (in.numel() > 0) in.copy_(mailboxes_.take({peer, rank_, -1 - received}));
  }

  void all_reduce_sum(at::Tensor& tensor) override { begin_all_reduce_sum(tensor)->wait(); }

  std::unique_ptr<Pending> begin_all_reduce_sum(at::Tensor& tensor) override {
    const auto name = next_++;
    send_to_all(name, [&](int) { return tensor; });
    count(tensor.numel() * 2);
    return std::make_unique<Later>([this, name, tensor]() {
      std::vector<at::Tensor> rows = receive_from_all(name, tensor);
      for (std::size_t row = 1; row < rows.size(); ++row) rows[0] = rows[0] + rows[row];
      tensor.copy_(rows[0]);
    });
  }

  void broadcast(at::Tensor& tensor, int root) override {
    const auto name = next_++;
    if (rank_ == root) send_to_all(name, [&](int) { return tensor; });
    if (rank_ != root) tensor.copy_(mailboxes_.take({root, rank_, name}));
  }

  std::unique_ptr<Pending> all_gather(const at::Tensor& mine, at::Tensor& whole) override {
    const auto name = next_++;
    send_to_all(name, [&](int) { return mine; });
    count(whole.numel());
    return std::make_unique<Later>([this, name, mine, whole]() {
      const auto places = whole.chunk(world_size_);
      const auto rows = receive_from_all(name, mine);
      for (std::size_t row = 0; row < rows.size(); ++row) places[row].copy_(rows[row]);
    });
  }

  std::unique_ptr<Pending> reduce_scatter(const at::Tensor& whole, at::Tensor& mine) override {
    const auto name = next_++;
    const auto slices = whole.chunk(world_size_);
    send_to_all(name, [&](int peer) { return slices[static_cast<std::size_t>(peer)]; });
    count(whole.numel());
    return std::make_unique<Later>(
        [this, name, own = slices[static_cast<std::size_t>(rank_)], mine]() mutable {
          tree_sum(receive_from_all(name, own), mine);
        });
  }

  CommVolume volume() const override { return volume_; }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    const auto place = std::ranges::find(ranks, rank_) - ranks.begin();
    auto& mailboxes =
        mailboxes_.split(std::to_string(splits_++) + "/" + std::to_string(ranks.front()));
    return std::make_unique<ThreadRank>(mailboxes, static_cast<int>(place),
                                        static_cast<int>(ranks.size()), this);
  }
  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>&,
                                            std::span<const std::string>,
                                            const SyncOptions& options) override {
    TORCH_CHECK(world_size() == 1, "the Reducer needs a process group");
    return make_single_communicator()->synchronise({}, {}, options);
  }
  void check_peers(const std::exception&) override {}
  void finish() noexcept override {}

 private:
  class Later final : public Pending {
   public:
    explicit Later(std::function<void()> work) : work_(std::move(work)) {}
    void wait() override {
      const at::NoGradGuard no_grad;
      work_();
      work_ = nullptr;
    }

   private:
    std::function<void()> work_;
  };

  void send_to_all(std::int64_t name, const std::function<at::Tensor(int)>& slice) {
    for (int peer = 0; peer < world_size_; ++peer)
      if (peer != rank_) mailboxes_.put({rank_, peer, name}, slice(peer));
  }

  /// In the order of the ranks; of this one `own`.
  std::vector<at::Tensor> receive_from_all(std::int64_t name, const at::Tensor& own) {
    std::vector<at::Tensor> rows;
    for (int peer = 0; peer < world_size_; ++peer)
      rows.push_back(peer == rank_ ? own : mailboxes_.take({peer, rank_, name}));
    return rows;
  }

  void count(std::int64_t elements) { add_sent(elements * (world_size_ - 1) / world_size_); }

  void add_sent(std::int64_t elements) {
    volume_.elements_sent += elements;
    if (split_off_ != nullptr) split_off_->add_sent(elements);
  }

  Mailboxes& mailboxes_;
  int rank_;
  int world_size_;
  ThreadRank* split_off_;  // of which this one was
  int splits_ = 0;
  std::int64_t next_ = 0;
  std::map<int, std::int64_t> sent_;
  std::map<int, std::int64_t> received_;
  CommVolume volume_;
};

/// Calls `work` once for each rank, each in a thread of its own. The first exception goes on.
inline void on_ranks(int world_size, const std::function<void(Communicator&)>& work) {
  Mailboxes mailboxes;
  on_rank_threads(world_size, [&](int rank) {
    ThreadRank communicator(mailboxes, rank, world_size);
    work(communicator);
  });
}

}  // namespace tj::trainer
