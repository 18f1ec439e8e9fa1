#include "operator/local/memory_api.h"

#include <gtest/gtest.h>

#include <deque>
#include <mutex>
#include <thread>

#include "tests/local/hand_loop.h"

namespace tj {
namespace {

using Json = nlohmann::json;

/// What a stream has said so far, one word per line: "ADDED a@2", "BOOKMARK @7", "ERROR 410",
/// "end", "end: timeout".
struct Heard {
  std::vector<std::string> words;
  WatchHandler handler() {
    return {
        .on_line = [this](const std::string& line) { words.push_back(word(Json::parse(line))); },
        .on_end =
            [this](const Result<void>& end) {
              words.push_back(end.ok() ? "end"
                                       : std::string("end: ") + to_string(end.error().code));
            }};
  }
  static std::string word(const Json& event) {
    const std::string type = event.at("type");
    const Json& object = event.at("object");
    if (type == "ERROR") return type + " " + std::to_string(object.at("code").get<int>());
    return type + " " + object["metadata"].value("name", "") + "@" +
           object["metadata"]["resourceVersion"].get<std::string>();
  }
  std::vector<std::string> take() { return std::exchange(words, {}); }
};

using Words = std::vector<std::string>;

struct MemoryApiTest : testing::Test {
  HandLoop loop;
  MemoryApi api{loop.post(), loop.clock(), {.history_changes_max = 6}};
  Heard heard;
  std::vector<std::string> answers;

  static Json pod(const std::string& name, const std::string& label = "a") {
    return {{"metadata", {{"name", name}, {"labels", {{"app", label}}}}},
            {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}};
  }
  void send(Request request) {
    api.send(std::move(request), [this](const Result<std::string>& body) {
      answers.push_back(body.ok() ? "ok"
                                  : std::string(to_string(body.error().code)) + ": " +
                                        body.error().message);
    });
  }
  void create(const std::string& name) {
    send({.verb = Verb::create,
          .resource = Resource::pods,
          .ns = "default",
          .body = pod(name).dump()});
  }
  std::unique_ptr<WatchStream> watch(const std::string& from, const std::string& selector = "") {
    return api.watch(
        {.resource = Resource::pods, .label_selector = selector, .resource_version = from},
        heard.handler());
  }
};

TEST_F(MemoryApiTest, answers_come_later_and_in_order) {
  create("a");
  create("a");
  send({.verb = Verb::get, .resource = Resource::pods, .ns = "default", .name = "b"});
  send({.verb = Verb::create, .resource = Resource::pods, .ns = "default", .body = "{"});
  EXPECT_TRUE(answers.empty());
  loop.turn();
  EXPECT_EQ(answers,
            (Words{"ok", "conflict: pods \"a\" already exists", "not_found: pods \"b\" not found",
                   "invalid: the request body is not a JSON object"}));
  EXPECT_EQ(api.request_log(), (Words{"create pods default/a", "create pods default/a",
                                      "get pods default/b", "create pods default/"}));
}

TEST_F(MemoryApiTest, a_replace_is_logged_as_update_and_names_its_object) {
  Json lease = {{"metadata", {{"name", "l"}, {"namespace", "default"}}}};
  lease["metadata"]["resourceVersion"] =
      api.objects().create(Resource::leases, "", lease).value()["metadata"]["resourceVersion"];
  lease["spec"] = {{"holderIdentity", "a"}};
  Request replace{.verb = Verb::replace,
                  .resource = Resource::leases,
                  .ns = "default",
                  .name = "l",
                  .body = lease.dump()};
  send(replace);
  send(replace);
  replace.name = "other";
  send(replace);
  send({.verb = Verb::list, .resource = Resource::nodes, .field_selector = "spec.a=b"});
  loop.turn();
  EXPECT_EQ(answers, (Words{"ok",
                            "conflict: Operation cannot be fulfilled on leases.coordination.k8s.io "
                            "\"l\": the object has been modified; please apply your changes to the "
                            "latest version and try again",
                            "invalid: the object's name is not the request's",
                            "forbidden: field label not supported: spec.a"}));
  EXPECT_EQ(api.request_log(),
            (Words{"update leases.coordination.k8s.io default/l",
                   "update leases.coordination.k8s.io default/l",
                   "update leases.coordination.k8s.io default/other", "list nodes "}));
}

TEST_F(MemoryApiTest, a_watch_replays_from_its_version_and_goes_on) {
  create("a");
  create("b");
  loop.turn();
  const auto stream = watch("2");
  create("c");
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ADDED b@3", "ADDED c@4"}));
  send({.verb = Verb::remove, .resource = Resource::pods, .ns = "default", .name = "b"});
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"DELETED b@5"}));
}

TEST_F(MemoryApiTest, a_watch_without_a_version_starts_with_what_is_there) {
  create("a");
  loop.turn();
  const auto stream = watch("");
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ADDED a@2"}));
}

TEST_F(MemoryApiTest, a_selected_watch_sees_objects_enter_and_leave_with_their_labels) {
  create("a");
  loop.turn();
  const auto stream = watch("2", "app=a");
  const auto relabel = [&](const char* label) {
    ASSERT_TRUE(
        api.objects()
            .patch(Resource::pods, {"default", "a"}, {{"metadata", {{"labels", {{"app", label}}}}}})
            .ok());
  };
  loop.turn();
  relabel("b");
  relabel("c");
  relabel("a");
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"DELETED a@3", "ADDED a@5"}));
}

TEST_F(MemoryApiTest, a_version_that_is_forgotten_is_answered_410_inside_the_stream) {
  for (int i = 0; i < 8; ++i) create("p" + std::to_string(i));
  loop.turn();
  const auto stream = watch("2");
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ERROR 410", "end"}));
}

TEST_F(MemoryApiTest, bookmarks_keep_a_quiet_watch_within_history) {
  const auto stream = watch("1", "app=other");
  loop.turn();
  for (int i = 0; i < 8; ++i) create("p" + std::to_string(i));
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"BOOKMARK @5", "BOOKMARK @9"}));
  api.end_watches();
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"BOOKMARK @9", "end"}));
  EXPECT_EQ(api.watch_count(), 0);
}

TEST_F(MemoryApiTest, a_stream_that_is_dropped_says_nothing_any_more) {
  auto stream = watch("1");
  loop.turn();
  create("a");
  loop.work.front()();  // the effect; the line is under way
  stream.reset();
  loop.turn();
  EXPECT_TRUE(heard.words.empty());
}

TEST_F(MemoryApiTest, garbage_of_a_deleted_owner_is_collected_and_seen) {
  const Json job = api.objects()
                       .apply({{"apiVersion", names::kApiVersion},
                               {"kind", names::kKind},
                               {"metadata", {{"name", "job"}}}})
                       .value();
  Json child = pod("child");
  child["metadata"]["ownerReferences"] =
      Json::array({{{"kind", names::kKind}, {"name", "job"}, {"uid", job["metadata"]["uid"]}}});
  ASSERT_TRUE(api.objects().create(Resource::pods, "default", child).ok());
  const auto stream = watch("3");
  send({.verb = Verb::remove, .resource = Resource::training_jobs, .ns = "default", .name = "job"});
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"DELETED child@5"}));
  // A creation that was under way when the owner went is swept up too.
  ASSERT_TRUE(api.objects().create(Resource::pods, "default", child).ok());
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ADDED child@6", "DELETED child@7"}));
}

TEST_F(MemoryApiTest, a_request_can_fail_before_or_after_its_effect_or_wait_for_its_answer) {
  std::optional<RequestFault> fault;
  api.set_request_fault([&](const Request&) { return fault; });
  const Error refused{
      .code = Code::unavailable, .message = "connection refused", .subject = "", .retry_after = {}};
  fault = {RequestFault::Kind::fail_before, refused};
  create("a");
  loop.turn();
  EXPECT_EQ(api.objects().objects(Resource::pods).size(), 0u);
  fault = {RequestFault::Kind::fail_after,
           {.code = Code::timeout, .message = "no answer", .subject = "", .retry_after = {}}};
  create("a");
  loop.turn();
  EXPECT_EQ(api.objects().objects(Resource::pods).size(), 1u);
  fault = {RequestFault::Kind::hold_answer, {}};
  create("b");
  loop.turn();
  EXPECT_EQ(api.objects().objects(Resource::pods).size(), 2u);
  EXPECT_EQ(answers, (Words{"unavailable: connection refused", "timeout: no answer"}));
  api.release_answers();
  loop.turn();
  EXPECT_EQ(answers.back(), "ok");
}

TEST_F(MemoryApiTest, lines_can_be_lost_doubled_or_late_but_never_change_their_order) {
  std::map<std::string, LineFault> faults = {
      {"b", LineFault::drop}, {"c", LineFault::duplicate}, {"d", LineFault::delay}};
  api.set_line_fault([&](const WatchRequest&, const std::string& line) {
    return faults[Json::parse(line)["object"]["metadata"].value("name", "")];
  });
  const auto stream = watch("1");
  for (const char* name : {"a", "b", "c", "d", "e"}) create(name);
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ADDED a@2", "ADDED c@4", "ADDED c@4"}));
  api.end_watches(
      Error{.code = Code::timeout, .message = "silent", .subject = "", .retry_after = {}});
  loop.turn();
  EXPECT_TRUE(heard.words.empty());
  api.release_lines();
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"ADDED d@5", "ADDED e@6", "end: timeout"}));
}

TEST_F(MemoryApiTest, a_watch_can_be_refused) {
  api.set_watch_fault([](const WatchRequest&) {
    return Error{.code = Code::forbidden, .message = "no", .subject = "", .retry_after = {}};
  });
  const auto stream = watch("1");
  loop.turn();
  EXPECT_EQ(heard.take(), (Words{"end: forbidden"}));
}

TEST_F(MemoryApiTest, a_subscription_is_reached_by_no_fault) {
  create("a");
  loop.turn();
  api.set_line_fault([](const WatchRequest&, const std::string&) { return LineFault::drop; });
  Words seen;
  const auto tap = api.subscribe(Resource::pods, [&](const ObjectChange& change) {
    seen.push_back(key_of(*change.object).name);
  });
  create("b");
  EXPECT_TRUE(seen.empty());
  loop.turn();
  EXPECT_EQ(seen, (Words{"a", "b"}));
}

/// Any thread may ask: what it takes is a post function that any thread may call.
TEST(MemoryApiThreads, requests_of_many_threads_are_served_by_the_loop_alone) {
  std::mutex mutex;
  std::deque<std::function<void()>> work;  // guarded by mutex
  const auto post = [&](std::function<void()> next) {
    const std::lock_guard lock(mutex);
    work.push_back(std::move(next));
  };
  MemoryApi api(post, [] { return TimePoint{}; });
  int answered = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 50; ++i) {
          const std::string name = "p-" + std::to_string(thread) + "-" + std::to_string(i);
          api.send({.verb = Verb::create,
                    .resource = Resource::pods,
                    .ns = "default",
                    .body = MemoryApiTest::pod(name).dump()},
                   [&](const Result<std::string>& body) { answered += body.ok() ? 1 : 0; });
        }
      });
    }
    while (answered < 200) {
      std::function<void()> next;
      {
        const std::lock_guard lock(mutex);
        if (work.empty()) continue;
        next = std::move(work.front());
        work.pop_front();
      }
      next();
    }
  }
  EXPECT_EQ(api.objects().objects(Resource::pods).size(), 200u);
}

}  // namespace
}  // namespace tj
