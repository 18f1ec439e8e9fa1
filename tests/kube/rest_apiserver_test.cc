// The client, the watcher and a real kube-apiserver: what the seam promises, the server really
// does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/kube/watcher.h"
#include "operator/loop/lease.h"
#include "tests/kube/client_loop.h"
#include "tests/kube/real_server.h"
#include "tests/kube/rest_fixture.h"

namespace tj {
namespace {
using nlohmann::json;
using std::chrono::seconds;
using testing::HasSubstr;

class StartServer : public testing::Environment {
 public:
  void SetUp() override {
    const Result<void> started = server().start();
    if (started) return;
    const char* required = std::getenv("TJ_REQUIRE_APISERVER");
    const bool must_run = required != nullptr && std::string(required) == "1";
    ASSERT_FALSE(must_run) << describe(started.error());
    std::cout << "no API server: " << describe(started.error()) << ": skipped\n";
    GTEST_SKIP() << describe(started.error());
  }
  void TearDown() override { server().stop(); }
};
const auto* const kServer = testing::AddGlobalTestEnvironment(new StartServer);

json pod(const std::string& name, const std::string& suite) {
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"labels", {{"suite", suite}}}}},
      {"spec", {{"restartPolicy", "Never"}, {"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
}

class RealServer : public testing::TestWithParam<Client> {
 protected:
  RealServer() : client_(make_client(GetParam(), loop_, config_of(server().kubeconfig()))) {}

  /// Each test, and each client, begins with an empty namespace.
  void TearDown() override {
    for (const Resource resource : {Resource::pods, Resource::leases}) {
      const auto removed = loop_.ask(api_, {.verb = Verb::remove,
                                            .resource = resource,
                                            .ns = "default",
                                            .body = R"({"kind":"DeleteOptions","apiVersion":"v1",)"
                                                    R"("gracePeriodSeconds":0})",
                                            .deadline = seconds(60)});
      EXPECT_TRUE(removed) << describe(removed.error());
    }
  }

  Result<std::string> create(const std::string& name, const std::string& suite) {
    return loop_.ask(api_, {.verb = Verb::create,
                            .resource = Resource::pods,
                            .ns = "default",
                            .body = pod(name, suite).dump()});
  }
  Result<std::string> get(const std::string& name) {
    return loop_.ask(
        api_, {.verb = Verb::get, .resource = Resource::pods, .ns = "default", .name = name});
  }
  Result<std::string> remove(const std::string& name, const std::string& uid) {
    const json options = {{"kind", "DeleteOptions"},
                          {"apiVersion", "v1"},
                          {"gracePeriodSeconds", 0},
                          {"preconditions", {{"uid", uid}}}};
    return loop_.ask(api_, {.verb = Verb::remove,
                            .resource = Resource::pods,
                            .ns = "default",
                            .name = name,
                            .body = options.dump()});
  }
  Result<std::string> patch_status(const std::string& name, const json& patch) {
    return loop_.ask(api_, {.verb = Verb::patch_status,
                            .resource = Resource::pods,
                            .ns = "default",
                            .name = name,
                            .body = patch.dump()});
  }
  Code code_of(const Result<std::string>& answer) {
    return answer ? Code::internal : answer.error().code;
  }
  std::string uid_of(const Result<std::string>& answer) {
    return json::parse(*answer)["metadata"]["uid"];
  }
  /// Creates many with 16 in flight; returns how many failed.
  int create_many(const std::string& prefix, int count, const std::string& suite) {
    int sent = 0, done = 0, failed = 0;
    std::function<void()> next = [&] {
      if (sent == count) return;
      const std::string name = prefix + std::to_string(sent++);
      api_.send({.verb = Verb::create,
                 .resource = Resource::pods,
                 .ns = "default",
                 .body = pod(name, suite).dump()},
                [&](Result<std::string> created) {
                  ++done;
                  if (!created && ++failed == 1) ADD_FAILURE() << describe(created.error());
                  next();
                });
    };
    for (int i = 0; i < 16; ++i) next();
    EXPECT_TRUE(loop_.run_until([&] { return done == count; }, seconds(120)));
    return failed;
  }

  ClientLoop loop_;
  std::unique_ptr<KubeApi> client_;
  KubeApi& api_ = *client_;
};

TEST_P(RealServer, create_get_and_delete_with_a_uid_precondition) {
  const auto created = create("plain", "crud");
  ASSERT_TRUE(created) << describe(created.error());
  const std::string uid = uid_of(created);
  EXPECT_EQ(uid_of(get("plain")), uid);
  EXPECT_EQ(code_of(create("plain", "crud")), Code::conflict);

  const auto refused = remove("plain", "00000000-0000-0000-0000-000000000000");
  ASSERT_EQ(code_of(refused), Code::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("the UID in the precondition"));
  EXPECT_TRUE(remove("plain", uid));
  EXPECT_EQ(code_of(get("plain")), Code::not_found);
  EXPECT_EQ(code_of(remove("plain", uid)), Code::not_found);
}

TEST_P(RealServer, an_object_it_rejects_is_invalid_with_the_field) {
  json bad = pod("bad", "crud");
  bad["spec"]["containers"][0].erase("name");
  const auto answer = loop_.ask(
      api_,
      {.verb = Verb::create, .resource = Resource::pods, .ns = "default", .body = bad.dump()});
  ASSERT_EQ(code_of(answer), Code::invalid);
  EXPECT_THAT(answer.error().message, HasSubstr("spec.containers[0].name: Required value"));
  EXPECT_THAT(answer.error().subject, HasSubstr("POST https://127.0.0.1:"));
}

TEST_P(RealServer, the_status_is_merge_patched_against_a_version) {
  const auto created = create("patched", "crud");
  ASSERT_TRUE(created);
  const std::string version = json::parse(*created)["metadata"]["resourceVersion"];
  const json patch = {{"metadata", {{"resourceVersion", version}}},
                      {"status", {{"phase", "Running"}, {"message", "hello"}}}};
  const auto patched = patch_status("patched", patch);
  ASSERT_TRUE(patched) << describe(patched.error());
  EXPECT_EQ(json::parse(*patched)["status"]["message"], "hello");
  const json later = {{"metadata", {{"resourceVersion", version}}},
                      {"status", {{"message", nullptr}}}};
  EXPECT_EQ(code_of(patch_status("patched", later)), Code::conflict) << "the version has moved on";
  const auto removed = patch_status("patched", {{"status", {{"message", nullptr}}}});
  EXPECT_FALSE(json::parse(*removed)["status"].contains("message"));
  EXPECT_TRUE(remove("patched", uid_of(created)));
}

/// A candidate for a Lease; its clock is turned by hand, the server is real.
struct Candidate {
  LeaderLease lease;
  std::function<Result<std::string>(Request)> ask;
  Moment now{SteadyTime{}, *parse_time("2026-11-21T12:00:00Z")};
  Result<std::string> answer{""};

  /// Carries out commands until one is a wait, or none is left.
  void take(std::optional<LeaseCommand> command) {
    for (int steps = 0; command && steps < 10; ++steps) {
      Request request{.resource = Resource::leases, .ns = "default", .name = "election"};
      if (std::holds_alternative<LookAtLease>(*command)) {
        answer = ask(request);
        command = lease.on_look(answer, now);
      } else if (const auto* write = std::get_if<WriteLease>(&*command)) {
        request.verb = write->is_new ? Verb::create : Verb::replace;
        if (write->is_new) request.name.clear();
        request.body = write->body;
        answer = ask(request);
        command = lease.on_written(answer, now);
      } else {
        return;
      }
    }
  }
  bool leads() const { return lease.leads(now.steady); }
};

TEST_P(RealServer, a_lease_makes_one_of_two_candidates_the_leader) {
  const auto ask = [this](Request request) { return loop_.ask(api_, std::move(request)); };
  Candidate a{LeaderLease({"default", "election", "a"}), ask};
  Candidate b{LeaderLease({"default", "election", "b"}), ask};
  a.take(a.lease.start(a.now.steady));
  EXPECT_TRUE(a.leads()) << (a.answer ? "" : describe(a.answer.error()));
  b.take(b.lease.start(b.now.steady));
  EXPECT_FALSE(b.leads());
  a.now.steady += kLeaseRetry;
  a.now.wall += kLeaseRetry;
  a.take(a.lease.on_waited(a.now));
  EXPECT_EQ(a.lease.leads_until(), a.now.steady + kRenewDeadline) << "renewed";
  const json held = json::parse(*a.answer);
  EXPECT_EQ(held["spec"]["renewTime"], "2026-11-21T12:00:02.000000Z");

  a.take(a.lease.release(a.now));
  EXPECT_TRUE(a.answer) << "no holder is a record that the server takes";
  b.take(b.lease.on_waited(b.now));
  EXPECT_TRUE(b.leads());
  EXPECT_EQ(json::parse(*b.answer)["spec"]["leaseTransitions"], 1);

  Request stale{.verb = Verb::replace,
                .resource = Resource::leases,
                .ns = "default",
                .name = "election",
                .body = held.dump()};
  EXPECT_EQ(code_of(ask(stale)), Code::conflict) << "a renewal that comes late changes nothing";
  json unguarded = held;
  unguarded["metadata"].erase("resourceVersion");
  stale.body = unguarded.dump();
  EXPECT_EQ(code_of(ask(stale)), Code::invalid);
  json taken = held;
  taken["metadata"] = {{"name", "election"}};
  EXPECT_EQ(code_of(ask({.verb = Verb::create,
                         .resource = Resource::leases,
                         .ns = "default",
                         .body = taken.dump()})),
            Code::conflict);
}

TEST_P(RealServer, a_list_is_selected_by_a_field) {
  ASSERT_TRUE(create("selected", "fields"));
  ASSERT_TRUE(create("left-out", "fields"));
  const auto list = [this](const std::string& selector) {
    return loop_.ask(api_, {.verb = Verb::list,
                            .resource = Resource::pods,
                            .ns = "default",
                            .field_selector = selector});
  };
  const auto found = list("metadata.name=selected,spec.nodeName=");
  ASSERT_TRUE(found) << describe(found.error());
  EXPECT_EQ(json::parse(*found)["items"].size(), 1U);
  EXPECT_EQ(code_of(list("spec.hostname=x")), Code::forbidden) << "a 400";
}

TEST_P(RealServer, nodes_and_network_policies_have_their_own_paths) {
  for (const Resource resource : {Resource::nodes, Resource::network_policies}) {
    const auto answer = loop_.ask(api_, {.verb = Verb::list, .resource = resource});
    EXPECT_TRUE(answer) << describe(answer.error());
  }
}

TEST_P(RealServer, a_user_without_rights_is_forbidden_with_the_reason) {
  if (server().nobody_kubeconfig().empty()) GTEST_SKIP() << "TJ_TEST_KUBECONFIG: no second user";
  const auto nobody = make_client(GetParam(), loop_, config_of(server().nobody_kubeconfig()));
  const auto answer = loop_.ask(*nobody, {.verb = Verb::list, .resource = Resource::pods});
  ASSERT_EQ(code_of(answer), Code::forbidden);
  EXPECT_THAT(answer.error().message, HasSubstr("User \"nobody\" cannot list resource \"pods\""));
}

TEST_P(RealServer, credentials_it_does_not_know_are_forbidden) {
  KubeConfig config = config_of(server().kubeconfig());
  config.client_certificate_pem = config.client_key_pem = "";
  config.token = "no-such-token";
  const auto stranger = make_client(GetParam(), loop_, config);
  const auto answer = loop_.ask(*stranger, {.verb = Verb::list, .resource = Resource::pods});
  ASSERT_EQ(code_of(answer), Code::forbidden);
  EXPECT_THAT(answer.error().message, HasSubstr("HTTP 401: Unauthorized"));
}

/// Lists and watches through the Watcher as the operator's driver does; keeps the names it knows.
class Follower {
 public:
  Follower(KubeApi& api, std::string selector) : api_(api), selector_(std::move(selector)) {}
  void start() { take(watcher_.start()); }
  std::set<std::string> names;
  int pages = 0;
  int streams = 0;
  std::vector<std::string> relists;
  Watcher watcher_;

 private:
  void take(const WatchStep& step) {
    for (const WatchDelta& delta : step.deltas) {
      if (const auto* all = std::get_if<Replace>(&delta)) {
        if (!all->continues) names.clear();
        for (const std::string& object : all->objects) names.insert(name_of(object));
      }
      if (const auto* one = std::get_if<Upsert>(&delta)) names.insert(name_of(one->object->dump()));
      if (const auto* one = std::get_if<Erase>(&delta)) names.erase(name_of(one->object->dump()));
    }
    if (!step.relist_reason.empty()) relists.push_back(step.relist_reason);
    if (!step.command) return;
    stream_.reset();
    if (const auto* list = std::get_if<StartList>(&*step.command)) {
      api_.send({.verb = Verb::list,
                 .resource = Resource::pods,
                 .ns = "default",
                 .label_selector = selector_,
                 .continue_token = list->continue_token},
                [this](Result<std::string> page) {
                  ++pages;
                  take(watcher_.on_list(page));
                });
    }
    if (const auto* watch = std::get_if<StartWatch>(&*step.command)) {
      ++streams;
      stream_ =
          api_.watch({.resource = Resource::pods,
                      .ns = "default",
                      .label_selector = selector_,
                      .resource_version = watch->resource_version,
                      .timeout = seconds(2)},
                     {.on_line = [this](std::string line) { take(watcher_.on_line(line)); },
                      .on_end = [this](Result<void> end) { take(watcher_.on_watch_end(end)); }});
    }
  }
  static std::string name_of(const std::string& object) {
    return json::parse(object)["metadata"]["name"];
  }

  KubeApi& api_;
  std::string selector_;
  std::unique_ptr<WatchStream> stream_;
};

TEST_P(RealServer, a_thousand_pods_are_created_listed_by_pages_and_followed) {
  const int count = 1'000;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(create_many("many-", count, "many"), 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << "creates/s with 16 in flight: " << static_cast<int>(count / took.count()) << "\n";

  Follower follower(api_, "suite=many");
  follower.start();
  ASSERT_TRUE(loop_.run_until([&] { return follower.names.size() == count; }));
  // At least: the server may cut pages shorter where it filters.
  EXPECT_GE(follower.pages, count / kListPageMax);

  const auto added = create("many-more", "many");
  ASSERT_TRUE(added);
  EXPECT_TRUE(create("another-suite", "other"));
  EXPECT_TRUE(loop_.run_until([&] { return follower.names.contains("many-more"); }));
  EXPECT_TRUE(remove("many-more", uid_of(added)));
  EXPECT_TRUE(loop_.run_until([&] { return !follower.names.contains("many-more"); }));
  EXPECT_TRUE(loop_.run_until([&] { return follower.streams >= 2; })) << "ends in order, goes on";
  EXPECT_THAT(follower.relists, testing::IsEmpty());
  EXPECT_FALSE(follower.names.contains("another-suite"));
}

TEST_P(RealServer, a_quiet_watch_is_told_the_newest_version_by_a_bookmark) {
  const auto list =
      loop_.ask(api_, {.verb = Verb::list, .resource = Resource::pods, .ns = "default"});
  ASSERT_TRUE(list) << describe(list.error());
  const std::string version = json::parse(*list)["metadata"]["resourceVersion"];
  WatchLog log;
  const auto stream = api_.watch({.resource = Resource::pods,
                                  .ns = "default",
                                  .label_selector = "suite=bookmark",
                                  .resource_version = version,
                                  .timeout = seconds(10)},
                                 log.handler());
  ASSERT_TRUE(create("for-this-watch", "bookmark"));
  ASSERT_TRUE(loop_.run_until([&] { return !log.lines.empty(); })) << "the stream is open";
  const auto created = create("not-for-this-watch", "other");
  ASSERT_TRUE(created) << describe(created.error());
  ASSERT_TRUE(loop_.run_until([&] { return log.end.has_value(); }));
  ASSERT_TRUE(log.end->ok()) << describe(log.end->error());
  const json last = json::parse(log.lines.back());
  EXPECT_EQ(last["type"], "BOOKMARK");
  EXPECT_GE(std::stoll(last["object"]["metadata"]["resourceVersion"].get<std::string>()),
            std::stoll(json::parse(*created)["metadata"]["resourceVersion"].get<std::string>()));
}

TEST_P(RealServer, a_version_that_was_compacted_away_is_gone) {
  if (server().nobody_kubeconfig().empty()) GTEST_SKIP() << "TJ_TEST_KUBECONFIG: no way to etcd";
  const auto created = create("compacted", "gone");
  ASSERT_TRUE(created) << describe(created.error());
  ASSERT_TRUE(server().compact(json::parse(*created)["metadata"]["resourceVersion"]));
  WatchLog log;  // events are not in the server's watch cache: their history is etcd's
  const auto stream =
      api_.watch({.resource = Resource::events, .resource_version = "1", .timeout = seconds(10)},
                 log.handler());
  ASSERT_TRUE(loop_.run_until([&] { return log.end.has_value() || !log.lines.empty(); }));
  Watcher watcher;
  watcher.start();
  watcher.on_list(std::string(R"({"metadata":{"resourceVersion":"1"},"items":[]})"));
  const WatchStep step =
      log.lines.empty() ? watcher.on_watch_end(*log.end) : watcher.on_line(log.lines[0]);
  EXPECT_EQ(step.relist_reason, "gone") << (log.lines.empty() ? "no line" : log.lines[0]);
}

INSTANTIATE_TEST_SUITE_P(Clients, RealServer,
                         testing::Values(Client::of_operator, Client::of_person), client_name);

}  // namespace
}  // namespace tj
