#include "trainer/comm/peers.h"

#include <gtest/gtest.h>

#include "tests/trainer/engine/closable_store.h"

namespace tj::trainer {
namespace {

/// Two ranks on nodes a and b; this one is rank 1.
struct Pair {
  c10::intrusive_ptr<ClosableStore> store = c10::make_intrusive<ClosableStore>();
  std::shared_ptr<KnownPeerFailure> of_rank_0 = std::make_shared<KnownPeerFailure>(0, 2);
  std::shared_ptr<KnownPeerFailure> of_rank_1 = std::make_shared<KnownPeerFailure>(1, 2);
  Peers peers{store, 1, 2, of_rank_1};

  Pair() {
    Peers(store, 0, 2, of_rank_0).introduce({.node = "a", .address = "10.0.0.1"});
    peers.introduce({.node = "b", .address = "10.0.0.2"});
    peers.learn();
  }
};

constexpr const char* kClosed =
    "[gloo/transport/tcp/pair.cc:1] Connection closed by peer [10.0.0.1]:4";
const Seen kSeen{.phase = Phase::step, .step = 12};

TEST(Peers, name_the_lost_one_and_settle_it) {
  Pair pair;
  const std::string lost =
      "rank 0 on node a was lost, in phase step after step 12: Connection closed by peer "
      "[10.0.0.1]:4";
  EXPECT_EQ(pair.peers.describe_failure(kClosed, kSeen), lost);
  EXPECT_EQ(pair.of_rank_0->ask(*pair.store), (PeerFailure{.message = lost, .absent = 0}));
}

TEST(Peers, say_what_nccl_warned_of_and_whom_it_named) {
  Pair pair;
  const std::string lost = pair.peers.describe_failure(
      "NCCL error in: NCCLUtils.cpp:93, unhandled system error, NCCL version 2.28.9\n"
      "ncclSystemError: System call failed. \nLast error:\n"
      "socketPollConnect: connect to 10.0.0.1<43215> returned Connection refused\nframe #0",
      kSeen);
  EXPECT_TRUE(lost.starts_with(
      "rank 0 on node a was lost, in phase step after step 12: unhandled system error, NCCL "
      "version 2.28.9: socketPollConnect: connect to 10.0.0.1<43215> returned Connection refused; "
      "NCCL takes ports of its own"))
      << lost;
}

TEST(Peers, say_what_another_thread_has_heard_before_the_store_closed) {
  Pair pair;
  pair.of_rank_0->settle(*pair.store, {.rank = 0, .reason = "BadData", .message = "bad data"});
  pair.of_rank_1->ask(*pair.store);  // the watchdog
  pair.store->close();
  EXPECT_EQ(pair.peers.describe_failure(kClosed, kSeen), "bad data");
}

TEST(Peers, know_no_more_than_that_rank_0_is_lost_when_its_store_closed_without_a_word) {
  Pair pair;
  pair.store->close();
  EXPECT_EQ(pair.peers.describe_failure(kClosed, kSeen),
            "rank 0 on node a was lost, in phase step after step 12, and the store with it");
}

TEST(Peers, that_differ_in_their_device_say_why) {
  const auto store = c10::make_intrusive<ClosableStore>();
  std::vector<Peers> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back(store, rank, 4, std::make_shared<KnownPeerFailure>(rank, 4));
    const bool has_gpu = rank == 0;
    ranks.back().introduce({.node = "a",
                            .device = has_gpu ? "cuda" : "cpu",
                            .why = has_gpu     ? "H200"
                                   : rank == 3 ? "no driver"
                                               : "out of memory"});
  }
  ranks.back().learn();
  EXPECT_EQ(ranks.back().describe_differences(),
            "rank 0 on node a trains on cuda (H200), but not rank 1 on node a (out of memory), "
            "rank 2 on node a, rank 3 on node a (no driver); --device cpu lets all train on the "
            "CPU");
}

/// What ranks 0, 1, ... with these cards say of them.
std::string shared_gpu(const std::vector<std::string>& cards) {
  const auto store = c10::make_intrusive<ClosableStore>();
  const int count = static_cast<int>(cards.size());
  std::vector<Peers> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.emplace_back(store, rank, count, std::make_shared<KnownPeerFailure>(rank, count));
    ranks.back().introduce({.node = "a", .card = cards[static_cast<std::size_t>(rank)]});
  }
  ranks.back().learn();
  return ranks.back().describe_shared_gpu();
}

TEST(Peers, that_share_a_gpu_are_named) {
  EXPECT_EQ(
      shared_gpu({"GPU-1", "GPU-2", "GPU-1"}),
      "rank 0 on node a and rank 2 on node a have one GPU between them, GPU-1; NCCL needs one "
      "for each rank: a smaller LOCAL_WORLD_SIZE (trainer launch --nproc), other "
      "CUDA_VISIBLE_DEVICES, or --device cpu");
}

TEST(Peers, on_cpus_or_gpus_of_their_own_share_none) {
  EXPECT_EQ(shared_gpu({"", ""}), "");
  EXPECT_EQ(shared_gpu({"GPU-1", "GPU-2"}), "");
}

}  // namespace
}  // namespace tj::trainer
