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

}  // namespace
}  // namespace tj::trainer
