#include "operator/loop/work_queue.h"

#include <gtest/gtest.h>

namespace tj {
namespace {
using namespace std::chrono_literals;

const ObjectKey kA{"ns", "a"};
const ObjectKey kB{"ns", "b"};
const SteadyTime kStart{1h};

TEST(WorkQueue, gives_a_key_to_one_worker_at_a_time) {
  WorkQueue queue;
  queue.add(kA, kStart);
  EXPECT_EQ(queue.pop(kStart), kA);
  queue.add(kA, kStart);
  EXPECT_EQ(queue.pop(kStart), std::nullopt);
  queue.succeeded(kA);
  EXPECT_EQ(queue.pop(kStart), kA);
}

TEST(WorkQueue, runs_once_more_however_often_a_key_was_added_meanwhile) {
  WorkQueue queue;
  queue.add(kA, kStart);
  ASSERT_EQ(queue.pop(kStart), kA);
  for (int i = 0; i < 10; ++i) queue.add(kA, kStart);
  queue.succeeded(kA);
  ASSERT_EQ(queue.pop(kStart), kA);
  queue.succeeded(kA);
  EXPECT_EQ(queue.pop(kStart + 1h), std::nullopt);
  EXPECT_EQ(queue.depth(), 0u);
}

TEST(WorkQueue, keeps_the_earliest_time) {
  WorkQueue queue;
  queue.add(kA, kStart + 5s);
  queue.add(kA, kStart + 9s);
  EXPECT_EQ(queue.next_due(), kStart + 5s);
  queue.add(kA, kStart + 1s);
  EXPECT_EQ(queue.next_due(), kStart + 1s);
  EXPECT_EQ(queue.pop(kStart + 999ms), std::nullopt);
  EXPECT_EQ(queue.pop(kStart + 1s), kA);
}

TEST(WorkQueue, keeps_the_earliest_time_of_what_was_added_during_the_work) {
  WorkQueue queue;
  queue.add(kA, kStart);
  ASSERT_EQ(queue.pop(kStart), kA);
  queue.add(kA, kStart + 9s);
  queue.add(kA, kStart + 3s);
  queue.succeeded(kA);
  EXPECT_EQ(queue.next_due(), kStart + 3s);
}

TEST(WorkQueue, serves_the_key_that_has_been_due_longest) {
  WorkQueue queue;
  queue.add(kA, kStart + 2s);
  queue.add(kB, kStart + 1s);
  EXPECT_EQ(queue.pop(kStart + 3s), kB);
  EXPECT_EQ(queue.pop(kStart + 3s), kA);
}

TEST(WorkQueue, doubles_the_wait_of_a_failing_key_up_to_a_bound_and_forgets_it_on_success) {
  WorkQueue queue;
  SteadyTime now = kStart;
  std::vector<std::chrono::milliseconds> waits;
  queue.add(kA, now);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(queue.pop(now), kA);
    waits.push_back(queue.failed(kA, now));
    now += waits.back();
  }
  EXPECT_EQ(waits[0], 5ms);
  EXPECT_EQ(waits[1], 10ms);
  EXPECT_EQ(waits[2], 20ms);
  EXPECT_EQ(waits.back(), WorkQueue::kBackoffMax);
  ASSERT_EQ(queue.pop(now), kA);
  queue.succeeded(kA);
  queue.add(kA, now);
  ASSERT_EQ(queue.pop(now), kA);
  EXPECT_EQ(queue.failed(kA, now), 5ms);
}

TEST(WorkQueue, honours_a_wish_that_is_longer_than_the_backoff) {
  WorkQueue queue;
  queue.add(kA, kStart);
  ASSERT_EQ(queue.pop(kStart), kA);
  EXPECT_EQ(queue.failed(kA, kStart, 7s), 7s);
  EXPECT_EQ(queue.next_due(), kStart + 7s);
}

TEST(WorkQueue, a_change_does_not_wait_for_the_backoff_of_a_failure) {
  WorkQueue queue;
  queue.add(kA, kStart);
  ASSERT_EQ(queue.pop(kStart), kA);
  queue.failed(kA, kStart, 60s);
  queue.add(kA, kStart + 1s);
  EXPECT_EQ(queue.pop(kStart + 1s), kA);
}

TEST(WorkQueue, a_namespace_alone_takes_half_of_the_workers_and_leaves_the_rest_to_others) {
  WorkQueue queue;
  for (std::size_t i = 0; i < WorkQueue::kInWorkMax; ++i) {
    queue.add({"busy", std::to_string(i)}, kStart);
  }
  std::size_t taken = 0;
  while (queue.pop(kStart)) ++taken;
  EXPECT_EQ(taken, WorkQueue::kInWorkMax / 2);
  EXPECT_EQ(queue.next_due(), std::nullopt) << "nothing to wake for until one has finished";
  queue.add({"other", "x"}, kStart + 1s);
  EXPECT_EQ(queue.next_due(), kStart + 1s);
  EXPECT_EQ(queue.pop(kStart + 1s), (ObjectKey{"other", "x"}));
  queue.succeeded({"busy", "0"});
  ASSERT_TRUE(queue.pop(kStart + 1s));
  EXPECT_EQ(queue.pop(kStart + 1s), std::nullopt);
}

TEST(WorkQueue, a_new_namespace_finds_a_worker_until_none_is_left) {
  WorkQueue queue;
  std::size_t taken = 0;
  for (int space = 0; space < 40; ++space) {
    for (int i = 0; i < 20; ++i) {
      queue.add({"ns" + std::to_string(space), std::to_string(i)}, kStart);
    }
    std::size_t of_this = 0;
    while (queue.pop(kStart)) ++of_this;
    EXPECT_EQ(of_this > 0, taken < WorkQueue::kInWorkMax) << space;
    taken += of_this;
  }
  EXPECT_EQ(taken, WorkQueue::kInWorkMax);
}

TEST(WorkQueue, bounds_its_keys_and_says_when_all_must_be_added_again) {
  WorkQueue queue(2);
  queue.add(kA, kStart);
  queue.add(kB, kStart);
  queue.add({"ns", "c"}, kStart);
  EXPECT_EQ(queue.depth(), 2u);
  EXPECT_FALSE(queue.take_overflow());
  ASSERT_EQ(queue.pop(kStart), kA);
  queue.succeeded(kA);
  EXPECT_TRUE(queue.take_overflow());
  EXPECT_FALSE(queue.take_overflow());
}

}  // namespace
}  // namespace tj
