// Several controllers over one API server: one acts, the others wait with warm caches, and at no
// time do two of them act.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "operator/loop/alarm.h"
#include "tests/loop/world.h"

namespace tj {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kLease = "trainingjob-operator";

/// One of the operators, with a cable of its own to the server and a wall clock of its own.
class Replica final : public KubeApi {
 public:
  enum class Cable {
    fine,
    cut,      // nothing goes through, nothing comes back
    one_way,  // requests arrive, answers don't
    refused,
  };

  Replica(World& world, const std::string& identity, std::chrono::hours clock_skew = 0h)
      : world_(world),
        identity_(identity),
        timeouts_(world.loop(), [&world] { return world.steady_now(); }) {
    ControllerOptions options = world.options();
    options.now = [now = options.now, clock_skew] { return now() + clock_skew; };
    options.lease = LeaseTarget{"default", kLease, identity};
    options.on_lease_lost = [this](const std::string& why) {
      lost = why;
      lost_at = world_.steady_now();
    };
    controller_ = std::make_unique<Controller>(world.loop(), *this, metrics_, std::move(options));
    world.attend(&controller_,
                 {[this] { return controller_->next_wake(); }, [this] { controller_->wake(); }});
    world.attend(&timeouts_, {[this] { return timeouts_.next(); }, [this] { timeouts_.wake(); }});
    controller_->start();
  }
  ~Replica() override {
    world_.leave(&controller_);
    world_.leave(&timeouts_);
    controller_.reset();
  }

  void send(Request request, Done done) override {
    note(request);
    if (cable == Cable::fine) return world_.api().send(std::move(request), std::move(done));
    if (cable == Cable::one_way) world_.api().send(request, [](const auto&) {});
    const auto delay = cable == Cable::refused ? 0ms : request.deadline;
    const Code code = cable == Cable::refused ? Code::unavailable : Code::timeout;
    timeouts_.set_after(std::to_string(++sent_), delay, [done = std::move(done), code] {
      done(Error{code, "the cable", "", {}});
    });
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    return world_.api().watch(std::move(request), std::move(handler));
  }

  Controller& controller() { return *controller_; }
  bool is_leader() { return metrics_.text().find("trainingjob_leader 1\n") != std::string::npos; }
  bool has_ended() const { return lost || stopped_; }
  void stop() {
    stopped_ = true;
    controller_->stop();
  }

  Cable cable = Cable::fine;
  std::optional<std::string> lost;
  std::chrono::steady_clock::time_point lost_at;
  std::vector<std::string> writes;        // to anything but the lease
  std::vector<std::string> wrong_writes;  // those that were not ours to make

 private:
  void note(const Request& request) {
    const bool is_write = request.verb != Verb::get && request.verb != Verb::list;
    if (!is_write || request.resource == Resource::leases) return;
    const std::string word = std::string(to_string(request.verb)) + " " +
                             to_string(request.resource) + " " + request.name;
    writes.push_back(word);
    const std::string holder = world_.get(Resource::leases, kLease)["spec"]["holderIdentity"];
    if (holder != identity_) wrong_writes.push_back(word + " while " + holder + " leads");
    if (has_ended()) wrong_writes.push_back(word + " after the end");
  }

  World& world_;
  std::string identity_;
  Metrics metrics_;
  std::unique_ptr<Controller> controller_;
  Alarm timeouts_;
  int sent_ = 0;
  bool stopped_ = false;
};

std::string holder(World& world) {
  return world.get(Resource::leases, kLease)["spec"]["holderIdentity"];
}

TEST(Leader, acts_and_the_follower_only_watches) {
  World world;
  world.set_kubelet(Kubelet::runs_pods_to_the_end);
  Replica first(world, "first");
  world.settle();
  Replica second(world, "second");
  world.create_job("a", 2);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  world.pass(1min);
  EXPECT_TRUE(first.is_leader());
  EXPECT_FALSE(second.is_leader());
  EXPECT_THAT(second.writes, IsEmpty());
  EXPECT_TRUE(second.controller().synced());
  EXPECT_EQ(second.controller().not_ready_reason(), "") << "waiting is no failure";
  const json lease = world.get(Resource::leases, kLease);
  EXPECT_EQ(lease["spec"]["leaseTransitions"], 0);
  EXPECT_LE(world.requests("get leases"), 35) << "a look each two seconds";
}

TEST(Leader, that_dies_is_followed_within_20_seconds_and_its_work_goes_on) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  Replica first(world, "first");
  world.settle();
  Replica second(world, "second");
  world.create_job("a", 3);
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  world.pass(1min);

  first.cable = Replica::Cable::cut;
  const auto died_at = world.steady_now();
  for (const std::string& name : world.pod_names()) world.end_pod(name, 0);
  ASSERT_TRUE(world.pass_until([&] { return second.is_leader(); }, 20s));
  EXPECT_THAT(first.lost.value_or(""), HasSubstr("could not be renewed within 10 s"));
  EXPECT_GE(world.steady_now() - first.lost_at, 3s) << "it had ended long before";
  EXPECT_GE(first.lost_at - died_at, 8s) << "it was not given up too early";
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Succeeded"; }));
  EXPECT_THAT(first.wrong_writes, IsEmpty());
  EXPECT_THAT(second.wrong_writes, IsEmpty());
  EXPECT_EQ(world.get(Resource::leases, kLease)["spec"]["leaseTransitions"], 1);
}

TEST(Leader, that_stops_in_order_is_followed_in_a_few_seconds) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  Replica first(world, "first");
  world.settle();
  Replica second(world, "second");
  world.pass(30s);
  world.create_job("a", 40);
  world.loop().poll_one();  // somewhere in the middle of its work
  while (first.writes.size() < 10) ASSERT_EQ(world.loop().poll_one(), 1u);
  first.stop();
  EXPECT_GT(first.controller().requests_in_flight(), 0u);
  world.settle();
  EXPECT_EQ(first.controller().requests_in_flight(), 0u);
  EXPECT_EQ(holder(world), "") << "given back";
  const auto& log = world.api().request_log();
  EXPECT_EQ(log.back(), "update leases.coordination.k8s.io default/trainingjob-operator")
      << "after the last write was answered";
  EXPECT_FALSE(first.lost) << "nothing was lost";
  ASSERT_TRUE(world.pass_until([&] { return second.is_leader(); }, 2500ms));
  ASSERT_TRUE(world.pass_until([&] { return world.phase("a") == "Running"; }));
  EXPECT_EQ(world.pod_names().size(), 40u);
  EXPECT_THAT(first.wrong_writes, IsEmpty());
  EXPECT_THAT(second.wrong_writes, IsEmpty());
}

TEST(Leader, a_renewal_in_flight_is_waited_for_before_the_lease_is_given_back) {
  World world;
  Replica first(world, "first");
  world.settle();
  const auto renewals = [&] { return world.requests("update leases"); };
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.verb != Verb::replace) return std::nullopt;
    return RequestFault{RequestFault::Kind::hold_answer, {}};
  });
  ASSERT_TRUE(world.pass_until([&] { return renewals() == 1; }));
  world.api().set_request_fault(nullptr);
  first.stop();
  world.settle();
  EXPECT_EQ(holder(world), "first");
  world.api().release_answers();
  world.settle();
  EXPECT_EQ(holder(world), "");
}

TEST(Leader, whose_lease_is_stolen_ends_within_the_retry_period) {
  World world;
  Replica first(world, "first");
  world.pass(10s);
  ASSERT_TRUE(first.is_leader());
  json lease = world.get(Resource::leases, kLease);
  lease["spec"]["holderIdentity"] = "thief";
  ASSERT_TRUE(world.objects().replace(Resource::leases, lease).ok());
  ASSERT_TRUE(world.pass_until([&] { return first.lost.has_value(); }, kLeaseRetry));
  EXPECT_EQ(*first.lost, "the lease default/trainingjob-operator is lost: \"thief\" has taken it");
  world.create_job("a", 1);
  world.pass(1min);
  EXPECT_THAT(first.writes, IsEmpty());
}

TEST(Leader, that_slept_through_its_deadline_does_nothing_before_it_ends) {
  World world;
  world.set_kubelet(Kubelet::starts_pods);
  Replica first(world, "first");
  world.pass(10s);
  world.create_job("a", 20);
  while (first.writes.size() < 5) ASSERT_EQ(world.loop().poll_one(), 1u);
  first.writes.clear();
  world.oversleep(11s);  // answers and events are there before any timer is looked at
  world.create_job("b", 1);
  world.settle();
  EXPECT_THAT(first.writes, IsEmpty());
  first.controller().wake();
  EXPECT_THAT(first.lost.value_or(""), HasSubstr("could not be renewed"));
}

TEST(Leader, is_not_elected_before_it_can_see) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::pods) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before, Error{Code::forbidden, "no", "pods", {}}};
  });
  Replica first(world, "first");
  world.pass(1min);
  EXPECT_EQ(world.requests("get leases"), 0);
  world.api().set_request_fault(nullptr);
  ASSERT_TRUE(world.pass_until([&] { return first.is_leader(); }));
}

TEST(Leader, a_missing_right_to_the_lease_is_told_by_readiness) {
  World world;
  world.api().set_request_fault([](const Request& request) -> std::optional<RequestFault> {
    if (request.resource != Resource::leases) return std::nullopt;
    return RequestFault{RequestFault::Kind::fail_before,
                        Error{Code::forbidden, "leases is forbidden", "", {}}};
  });
  Replica first(world, "first");
  world.create_job("a", 1);
  world.pass(1min);
  EXPECT_THAT(first.controller().not_ready_reason(), HasSubstr("can't lead: "));
  EXPECT_THAT(first.controller().not_ready_reason(), HasSubstr("leases is forbidden"));
  EXPECT_THAT(first.writes, IsEmpty());
  world.api().set_request_fault(nullptr);
  ASSERT_TRUE(world.pass_until([&] { return first.is_leader(); }));
  EXPECT_EQ(first.controller().not_ready_reason(), "");
}

constexpr unsigned kStormSeeds = kIsSanitized ? 2 : 10;

TEST(Leader, is_one_whatever_happens_to_cables_clocks_and_processes) {
  for (unsigned seed = 1; seed <= kStormSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto pick = [&](int count) { return static_cast<int>(random() % unsigned(count)); };
    World world;
    world.set_kubelet(Kubelet::runs_pods_to_the_end);
    std::vector<std::unique_ptr<Replica>> replicas;
    int born = 0, job_count = 0;
    const auto birth = [&] {
      const int number = born++;
      return std::make_unique<Replica>(world, "replica-" + std::to_string(number),
                                       std::chrono::hours{pick(5) - 2});
    };
    for (int i = 0; i < 3; ++i) replicas.push_back(birth());
    for (int step = 0; step < 40; ++step) {
      auto& one = replicas[static_cast<std::size_t>(pick(3))];
      switch (pick(6)) {
        case 0: one->cable = Replica::Cable::cut; break;
        case 1: one->cable = Replica::Cable::one_way; break;
        case 2: one->cable = Replica::Cable::refused; break;
        case 3: one->stop(); break;
        case 4: world.create_job("job-" + std::to_string(job_count++), 2); break;
        default: one->cable = Replica::Cable::fine; break;
      }
      world.pass(std::chrono::milliseconds{pick(9'000)});
      for (auto& replica : replicas) {
        ASSERT_THAT(replica->wrong_writes, IsEmpty());
        if (replica->has_ended() && pick(3) == 0) replica = birth();
      }
    }
    for (auto& replica : replicas) {
      replica->cable = Replica::Cable::fine;
      if (replica->has_ended()) replica = birth();
    }
    world.pass(10min);
    for (int i = 0; i < job_count; ++i) {
      EXPECT_EQ(world.phase("job-" + std::to_string(i)), "Succeeded");
    }
    EXPECT_EQ(std::count_if(replicas.begin(), replicas.end(),
                            [](auto& replica) { return replica->is_leader(); }),
              1);
  }
}

}  // namespace
}  // namespace tj
