#include "trainer/comm/tree_all_reduce.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace tj::trainer {
namespace {

constexpr std::chrono::seconds kWaitMax{30};

/// What the ranks of one process have sent each other and nobody has taken yet.
class Mailboxes {
 public:
  void put(int from, int to, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    mail_[{from, to}].push_back(tensor.clone());
    changed_.notify_all();
  }

  at::Tensor take(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& box = mail_[{from, to}];
    TORCH_CHECK(changed_.wait_for(lock, kWaitMax, [&] { return !box.empty(); }), "no mail");
    auto tensor = box.front();
    box.erase(box.begin());
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int>, std::vector<at::Tensor>> mail_;
};

/// A rank that is a thread: exchanges tensors for real, and does nothing else.
class ThreadRank final : public Communicator {
 public:
  ThreadRank(Mailboxes& mailboxes, int rank, int world_size)
      : mailboxes_(mailboxes), rank_(rank), world_size_(world_size) {}
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  void exchange(const at::Tensor& out, at::Tensor& in, int peer) override {
    mailboxes_.put(rank_, peer, out);
    in.copy_(mailboxes_.take(peer, rank_));
  }
  void all_reduce_sum(at::Tensor&) override { TORCH_CHECK(false, "not asked for"); }
  void broadcast(at::Tensor&, int) override { TORCH_CHECK(false, "not asked for"); }
  std::unique_ptr<GradientSync> synchronise(const std::vector<at::Tensor>&,
                                            std::span<const std::string>) override {
    return nullptr;
  }
  void check_peers(const std::string&) override {}
  void finish() noexcept override {}

 private:
  Mailboxes& mailboxes_;
  int rank_;
  int world_size_;
};

at::Tensor part_of(int rank, std::int64_t size) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank) + 1);
  return torch::randn({size}, generator) * std::pow(10.0, rank % 4);
}

/// ((0 + 1) + (2 + 3)) + ..., written down.
at::Tensor tree_sum(int first, int count, std::int64_t size) {
  if (count == 1) return part_of(first, size);
  return tree_sum(first, count / 2, size) + tree_sum(first + count / 2, count / 2, size);
}

std::vector<at::Tensor> reduced(int world_size, std::int64_t size) {
  Mailboxes mailboxes;
  std::vector<at::Tensor> results;
  for (int rank = 0; rank < world_size; ++rank) results.push_back(part_of(rank, size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back(
        [&mailboxes, &result = results[static_cast<std::size_t>(rank)], rank, world_size] {
          ThreadRank communicator(mailboxes, rank, world_size);
          tree_all_reduce(communicator, result);
        });
  }
  threads.clear();  // joins
  return results;
}

TEST(TreeAllReduce, every_rank_has_the_bits_of_the_tree) {
  for (const int world_size : {1, 2, 4, 8}) {
    for (const std::int64_t size : {1, 3, 64, 1001}) {  // also fewer elements than ranks
      const auto wanted = tree_sum(0, world_size, size);
      for (const auto& result : reduced(world_size, size))
        EXPECT_TRUE(result.equal(wanted)) << world_size << " ranks, " << size << " elements";
    }
  }
}

TEST(TreeAllReduce, other_numbers_of_ranks_are_refused) {
  Mailboxes mailboxes;
  ThreadRank communicator(mailboxes, 0, 3);
  auto tensor = torch::ones({4});
  EXPECT_THROW(tree_all_reduce(communicator, tensor), c10::Error);
}

}  // namespace
}  // namespace tj::trainer
