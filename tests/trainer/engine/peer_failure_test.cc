#include "trainer/watch/peer_failure.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/trainer/engine/closable_store.h"

namespace tj::trainer {
namespace {

const PeerFailure kDamage{.rank = 0, .reason = "BadData", .message = "rank 0 failed first"};

TEST(KnownPeerFailure, is_what_the_first_rank_has_settled) {
  ClosableStore store;
  KnownPeerFailure first(0, 2), second(1, 2);
  EXPECT_EQ(second.ask(store), std::nullopt);
  EXPECT_EQ(first.settle(store, kDamage), kDamage);
  EXPECT_EQ(second.settle(store, {.rank = 1, .message = "an echo"}), kDamage);
  EXPECT_EQ(second.ask(store), kDamage);
}

TEST(KnownPeerFailure, outlives_the_store) {
  ClosableStore store;
  KnownPeerFailure teller(0, 2), hearer(1, 2);
  teller.settle(store, kDamage);
  hearer.ask(store);
  store.close();
  EXPECT_EQ(hearer.ask(store), kDamage);
  EXPECT_EQ(hearer.known(), kDamage);
  EXPECT_ANY_THROW(KnownPeerFailure(1, 2).ask(store)) << "of a process that has not heard it";
}

TEST(KnownPeerFailure, is_acknowledged_by_rank_0_once_all_others_have) {
  constexpr int kPolls = 20;
  ClosableStore store;
  KnownPeerFailure teller(0, 3), quick(1, 3), slow(2, 3);
  teller.settle(store, kDamage);
  quick.ask(store);
  quick.acknowledge(store);
  std::atomic<bool> has_heard = false;
  const std::jthread late([&] {
    while (store.check_count() < kPolls) std::this_thread::yield();
    slow.ask(store);
    has_heard = true;
    slow.acknowledge(store);
  });
  teller.acknowledge(store);
  EXPECT_TRUE(has_heard);
}

TEST(KnownPeerFailure, is_not_waited_for_at_a_rank_that_can_not_hear) {
  ClosableStore store;
  KnownPeerFailure teller(0, 3), other(1, 3);
  teller.settle(store, {.message = "rank 2 was lost", .absent = 2});
  other.ask(store);
  other.acknowledge(store);
  const int before = store.check_count();
  teller.acknowledge(store);
  EXPECT_EQ(store.check_count() - before, 1);
}

}  // namespace
}  // namespace tj::trainer
