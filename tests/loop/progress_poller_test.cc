// When whom is asked, over a clock that is turned by hand and a source that answers when told to.
#include "operator/loop/progress_poller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <deque>

namespace tj {
namespace {
using namespace std::chrono_literals;

class HeldSource final : public ProgressSource {
 public:
  void fetch(const ProgressTarget& target, Done done) override {
    held.push_back({target, std::move(done)});
    at_once_max = std::max(at_once_max, held.size());
    ++asked;
  }
  void answer_all(const PollAnswer& answer) {
    for (auto rest = std::exchange(held, {}); !rest.empty(); rest.pop_front()) {
      rest.front().done(answer);
    }
  }
  struct Held {
    ProgressTarget target;
    Done done;
  };
  std::deque<Held> held;
  std::size_t at_once_max = 0;
  int asked = 0;
};

PollAnswer document(long long step, double age = 0) {
  PollAnswer answer{PollResult::read, {}};
  answer.document.step = step;
  answer.document.heartbeat_age_seconds = age;
  return answer;
}

struct Bench {
  boost::asio::io_context loop;
  SteadyTime now{std::chrono::hours{1}};
  Alarm alarm{loop, [this] { return now; }};
  Metrics metrics;
  HeldSource source;
  std::vector<ObjectKey> woken;
  ProgressPoller poller{&source, alarm, metrics,
                        [this](const ObjectKey& key) { woken.push_back(key); }};

  static TrainingJob job(const std::string& name, std::optional<int> heartbeat = {}) {
    TrainingJob job;
    job.meta = {.name = name, .ns = "default", .uid = "uid-" + name};
    job.status.phase = Phase::running;
    if (heartbeat) job.spec.run.heartbeat_timeout = std::chrono::seconds{*heartbeat};
    return job;
  }
  static Pod rank0(const std::string& uid) {
    Pod pod;
    pod.meta.uid = uid;
    pod.worker_index = 0;
    pod.phase = PodPhase::running;
    pod.ip = "10.0.0.1";
    return pod;
  }
  std::optional<ProgressNews> look(const TrainingJob& job, Pod pod) {
    pod.meta.controller_uid = job.meta.uid;
    pod.attempt = job.status.attempt;
    return poller.look(job, {std::move(pod)});
  }
  /// Turns the clock, and answers each question at once.
  void pass(std::chrono::milliseconds duration, const PollAnswer& answer) {
    const SteadyTime end = now + duration;
    for (;;) {
      source.answer_all(answer);
      const auto next = alarm.next();
      if (!source.held.empty()) continue;
      if (!next || *next > end) break;
      now = std::max(now, *next);
      alarm.wake();
    }
    now = end;
  }
};

TEST(ProgressPoller, asks_soon_and_then_every_ten_seconds) {
  Bench bench;
  const TrainingJob job = Bench::job("a");
  const Pod pod = Bench::rank0("p");
  EXPECT_FALSE(bench.look(job, pod)->document);
  bench.pass(2s, document(1));
  EXPECT_EQ(bench.source.asked, 1);
  EXPECT_EQ(bench.look(job, pod)->document->step, 1);
  bench.pass(100s, document(2));
  EXPECT_GE(bench.source.asked, 10);
  EXPECT_LE(bench.source.asked, 13);
  EXPECT_EQ(bench.woken.size(), 2U) << "what has not moved is no news";
}

TEST(ProgressPoller, asks_who_is_not_there_less_and_less_often) {
  Bench bench;
  const TrainingJob job = Bench::job("a", 60);  // a limit does not matter before it was read
  bench.look(job, Bench::rank0("p"));
  bench.pass(1h, {PollResult::refused, {}});
  EXPECT_LE(bench.source.asked, 20);
  EXPECT_GE(bench.source.asked, 12);
  EXPECT_EQ(bench.woken.size(), 0U);
  bench.pass(6min, document(1));
  const int asked = bench.source.asked;
  bench.pass(1min, document(2));
  EXPECT_GE(bench.source.asked, asked + 5) << "often again";
}

TEST(ProgressPoller, tells_since_when_it_can_read_no_more) {
  Bench bench;
  const TrainingJob job = Bench::job("a", 60);
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  bench.pass(20s, document(1));
  bench.pass(50s, {PollResult::no_answer, {}});
  const auto early = bench.look(job, pod)->unreadable_for;
  EXPECT_GT(early, 20s);
  EXPECT_LE(early, 50s);
  EXPECT_EQ(bench.woken.size(), 1U);
  bench.pass(40s, {PollResult::unreachable, {}});
  EXPECT_GT(bench.look(job, pod)->unreadable_for, 60s);
  EXPECT_GT(bench.woken.size(), 1U);
  bench.pass(20s, document(1));
  EXPECT_EQ(bench.look(job, pod)->unreadable_for, 0s);
}

TEST(ProgressPoller, concludes_nothing_from_a_network_that_lets_nobody_through) {
  Bench bench;
  const TrainingJob job = Bench::job("a", 60);
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  bench.pass(20s, document(1));
  bench.pass(1h, {PollResult::unreachable, {}});
  EXPECT_EQ(bench.look(job, pod)->unreadable_for, 0s);
}

TEST(ProgressPoller, concludes_nothing_from_its_own_sleep) {
  Bench bench;
  const TrainingJob job = Bench::job("a", 60);
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  bench.pass(20s, document(1));
  bench.now += 1h;
  bench.alarm.wake();
  bench.source.answer_all({PollResult::no_answer, {}});
  EXPECT_EQ(bench.look(job, pod)->unreadable_for, 0s);
  EXPECT_EQ(bench.woken.size(), 1U);
}

TEST(ProgressPoller, has_a_bound_on_questions_under_way) {
  Bench bench;
  std::vector<Pod> pods;
  for (int i = 0; i < 1'000; ++i) pods.push_back(Bench::rank0("p" + std::to_string(i)));
  for (int i = 0; i < 1'000; ++i) {
    bench.look(Bench::job("j" + std::to_string(i)), pods[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(bench.poller.asked_count(), 1'000U);
  EXPECT_EQ(bench.poller.write_interval(), 200s);
  bench.now += 3s;
  bench.alarm.wake();
  EXPECT_EQ(bench.source.held.size(), ProgressPoller::kAtOnceMax);
  bench.now += 1h;
  bench.alarm.wake();
  EXPECT_EQ(bench.source.asked, int{ProgressPoller::kAtOnceMax}) << "nobody has answered yet";
  bench.pass(0s, document(1));
  EXPECT_EQ(bench.source.asked, 1'000);
  EXPECT_EQ(bench.source.at_once_max, ProgressPoller::kAtOnceMax);
  bench.pass(1200s, document(1));
  EXPECT_GE(bench.source.asked, 6'000) << "as often as it may be told";
  EXPECT_LE(bench.source.asked, 8'000);
  for (int i = 0; i < 1'000; ++i)
    bench.poller.forget(Bench::job("j" + std::to_string(i)).meta.key());
  EXPECT_EQ(bench.poller.asked_count(), 0U);
  EXPECT_EQ(bench.poller.write_interval(), kProgressIntervalMin);
}

TEST(ProgressPoller, asks_at_another_port_at_once) {
  Bench bench;
  TrainingJob job = Bench::job("a");
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  bench.pass(1h, {PollResult::refused, {}});
  bench.now = *bench.alarm.next();
  bench.alarm.wake();
  ASSERT_EQ(bench.source.held.size(), 1U);
  job.progress_port = 8'080;
  bench.look(job, pod);
  bench.source.answer_all(document(7));
  EXPECT_FALSE(bench.look(job, pod)->document) << "the answer of the port before";
  bench.pass(3s, document(1));
  EXPECT_EQ(bench.look(job, pod)->document->step, 1);
}

TEST(ProgressPoller, listens_to_no_answer_of_an_earlier_pod) {
  Bench bench;
  const TrainingJob job = Bench::job("a");
  const Pod first = Bench::rank0("first"), second = Bench::rank0("second");
  bench.look(job, first);
  bench.now += 2s;
  bench.alarm.wake();
  ASSERT_EQ(bench.source.held.size(), 1U);
  bench.look(job, second);
  bench.source.answer_all(document(7));
  EXPECT_FALSE(bench.look(job, second)->document);
  bench.pass(3s, document(1));
  EXPECT_EQ(bench.look(job, second)->document->step, 1);
}

TEST(ProgressPoller, believes_no_other_attempt_and_no_negative_step) {
  Bench bench;
  TrainingJob job = Bench::job("a");
  job.status.attempt = 2;
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  PollAnswer other = document(5);
  other.document.attempt = 1;
  bench.pass(3s, other);
  bench.pass(10s, document(-1));
  EXPECT_FALSE(bench.look(job, pod)->document);
  other.document.attempt = 2;
  bench.pass(60s, other);
  EXPECT_TRUE(bench.look(job, pod)->document);
}

TEST(ProgressPoller, asks_only_a_rank_0_that_runs_and_has_an_address) {
  Bench bench;
  TrainingJob job = Bench::job("a");
  Pod pod = Bench::rank0("p");
  const auto is_asked = [&] {
    bench.look(job, pod);
    return bench.poller.asked_count() == 1;
  };
  EXPECT_TRUE(is_asked());
  pod.phase = PodPhase::pending;
  EXPECT_FALSE(is_asked());
  pod = Bench::rank0("p");
  pod.ip.clear();
  EXPECT_FALSE(is_asked());
  pod = Bench::rank0("p");
  pod.exit = ContainerExit{};
  EXPECT_FALSE(is_asked());
  pod = Bench::rank0("p");
  pod.meta.deletion_time = TimePoint{};
  EXPECT_FALSE(is_asked());
  pod = Bench::rank0("p");
  job.progress_port.reset();
  EXPECT_FALSE(is_asked());
  job.progress_port = 8000;
  EXPECT_TRUE(is_asked());
  bench.now += 2s;
  bench.alarm.wake();
  EXPECT_EQ(bench.source.held.front().target.port, 8000);
  job.status.phase = Phase::succeeded;
  EXPECT_FALSE(is_asked());
}

TEST(ProgressPoller, looks_more_often_near_the_end) {
  Bench bench;
  const TrainingJob job = Bench::job("a");
  bench.look(job, Bench::rank0("p"));
  PollAnswer late = document(99);
  late.document.eta_seconds = 4;
  bench.pass(22s, late);
  EXPECT_GE(bench.source.asked, 8);
  EXPECT_LE(bench.source.asked, 13);
}

TEST(ProgressPoller, is_silent_after_its_stop) {
  Bench bench;
  const TrainingJob job = Bench::job("a");
  const Pod pod = Bench::rank0("p");
  bench.look(job, pod);
  bench.now += 2s;
  bench.alarm.wake();
  bench.poller.stop();
  bench.source.answer_all(document(1));
  EXPECT_FALSE(bench.look(job, pod));
  bench.pass(1h, document(1));
  EXPECT_EQ(bench.source.asked, 1);
  EXPECT_TRUE(bench.woken.empty());
}

}  // namespace
}  // namespace tj
