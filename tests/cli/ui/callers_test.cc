// People who sign in to one page: whom the API server knows is let in, each sees what their own
// token may read, and nobody stays for ever. A cluster in memory, in which each user may read one
// namespace.
#include "cli/ui/callers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/ui/callers_site.h"
#include "operator/local/memory_api.h"
#include "tests/cli/ui/loop_until.h"

namespace tj::ui {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// Token "alice.7" is one of user alice, who may read the namespace alice.
std::string user_of(const std::string& token) { return token.substr(0, token.find('.')); }

struct Cluster {
  boost::asio::io_context& loop;
  MemoryApi api{[this](std::function<void()> work) { boost::asio::post(loop, std::move(work)); },
                wall_clock};
  std::set<std::string> users = {"alice", "bob"};
  bool is_down = false;
  int reviews = 0;
};

/// A client with one token.
class TokenApi final : public KubeApi {
 public:
  TokenApi(Cluster& cluster, std::string token) : cluster_(cluster), token_(std::move(token)) {}

  void send(Request request, Done done) override {
    if (cluster_.is_down)
      return later(std::move(done), Error{Code::unavailable, "refused", "", {}});
    if (const auto error = refusal(request.ns)) return later(std::move(done), *error);
    if (request.resource != Resource::self_subject_reviews)
      return cluster_.api.send(std::move(request), std::move(done));
    ++cluster_.reviews;
    later(std::move(done),
          json{{"status", {{"userInfo", {{"username", user_of(token_)}}}}}}.dump());
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    return cluster_.api.watch(std::move(request), std::move(handler));
  }

 private:
  std::optional<Error> refusal(const std::string& ns) const {
    if (!cluster_.users.contains(user_of(token_)))
      return Error{Code::forbidden, "HTTP 401: Unauthorized", "", {}};
    if (ns.empty() || ns == user_of(token_)) return {};
    return Error{Code::forbidden, user_of(token_) + " cannot list trainingjobs in " + ns, "", {}};
  }
  void later(Done done, Result<std::string> answer) {
    boost::asio::post(cluster_.loop, [alive = std::weak_ptr(alive_), done = std::move(done),
                                      answer = std::move(answer)] {
      if (!alive.expired()) done(answer);
    });
  }

  Cluster& cluster_;
  std::string token_;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

struct World {
  boost::asio::io_context loop;
  Cluster cluster{.loop = loop};
  SteadyTime now{1h};
  std::vector<std::string> told;
  Callers callers{
      loop,
      [this](const std::string& token) { return std::make_unique<TokenApi>(cluster, token); },
      {.now = [this] { return now; },
       .tell = [this](const std::string& line) { told.push_back(line); }}};
  CallersSite site{callers, {}, ""};

  World() {
    for (const char* ns : {"alice", "bob"}) {
      const json job = {
          {"apiVersion", "kubebrain.io/v1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "job-of-" + std::string(ns)}}},
          {"spec",
           {{"replicaSpecs",
             {{"Worker",
               {{"template",
                 {{"spec", {{"containers", {{{"name", "m"}, {"image", "i"}}}}}}}}}}}}}}};
      const auto stored = cluster.api.objects().create(Resource::training_jobs, ns, job);
      TJ_CHECK(stored.ok(), "create");
    }
  }
  template <typename Condition>
  bool until(Condition condition) {
    return loop_until(loop, condition);
  }
  /// The answer, which may come later.
  HttpReply ask(HttpQuestion question) {
    question.headers.insert(question.headers.begin(), {"host", "localhost:8080"});
    HttpReply reply = site.answer(question);
    if (!reply.later) return reply;
    std::optional<HttpReply> known;
    reply.later([&known](HttpReply given) { known = std::move(given); });
    EXPECT_TRUE(until([&] { return known.has_value(); }));
    return known ? *std::move(known) : HttpReply{};
  }
  HttpReply get(const std::string& target, HttpHeaders headers) {
    return ask({.method = "GET", .target = target, .headers = std::move(headers)});
  }
  HttpReply post(const std::string& target, const std::string& body, HttpHeaders headers = {}) {
    headers.insert(headers.end(),
                   {{"origin", "http://localhost:8080"}, {"content-type", "application/json"}});
    return ask({.method = "POST", .target = target, .headers = std::move(headers), .body = body});
  }
  HttpReply try_sign_in(const std::string& token, const std::string& ns) {
    return post("/api/sign-in", json{{"token", token}, {"namespace", ns}}.dump());
  }
  /// The header with the cookie.
  HttpHeaders sign_in(const std::string& token, const std::string& ns) {
    const HttpReply reply = try_sign_in(token, ns);
    EXPECT_EQ(reply.status, 200) << reply.body;
    for (const auto& [name, value] : reply.headers) {
      if (name == "Set-Cookie") return {{"cookie", value.substr(0, value.find(';'))}};
    }
    return {};
  }
  std::vector<std::string> jobs(const HttpHeaders& shown) {
    std::vector<std::string> names;
    const json all = json::parse(get("/api/jobs", shown).body);
    for (const json& job : all.value("jobs", json::array())) names.push_back(job["name"]);
    return names;
  }
  bool comes_to_see(const HttpHeaders& shown, const std::string& job) {
    return until([&] { return jobs(shown) == std::vector<std::string>{job}; });
  }
};

json body_of(const HttpReply& reply) { return json::parse(reply.body); }

const HttpHeaders kNobody;
const HttpHeaders kByProxy = {{"authorization", "Bearer alice.1"}};

TEST(Callers, nobody_is_let_in_without_a_token_that_the_cluster_knows) {
  World world;
  for (const char* path : {"/api/jobs", "/api/jobs/alice/job-of-alice",
                           "/api/jobs/alice/job-of-alice/log", "/api/anything"}) {
    const HttpReply reply = world.get(path, kNobody);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(body_of(reply)["sign_in"], true) << path;
  }
  EXPECT_EQ(world.try_sign_in("mallory.1", "alice").status, 401);
  EXPECT_EQ(world.get("/api/jobs", {{"authorization", "Bearer mallory.1"}}).status, 401);
  EXPECT_EQ(world.get("/api/jobs", {{"cookie", "tj-page-8080=" + std::string(64, 'a')}}).status,
            401);
  EXPECT_EQ(world.get("/api/jobs", {{"cookie", "tj-page-8080="}}).status, 401);
  EXPECT_EQ(world.callers.count(), 0U);
  EXPECT_EQ(world.cluster.reviews, 0);
}

TEST(Callers, what_is_no_token_is_not_sent_to_the_cluster) {
  World world;
  world.cluster.users.insert("");
  for (const std::string& token :
       {std::string(), std::string("alice 1"), std::string("alice\r\nX: y"), std::string("\xff"),
        std::string(Callers::kTokenBytesMax + 1, 'a')}) {
    EXPECT_EQ(world.callers.count(), 0U);
    std::optional<Result<Callers::SignedIn>> answer;
    world.callers.sign_in({.token = token, .ns = ""},
                          [&](const Result<Callers::SignedIn>& in) { answer = in; });
    ASSERT_TRUE(answer) << "at once";
    EXPECT_EQ(answer->error().code, Code::invalid);
  }
  EXPECT_EQ(world.cluster.reviews, 0);
}

TEST(Callers, whom_the_server_takes_for_nobody_is_refused) {
  World world;
  world.cluster.users.insert("system:anonymous");
  std::optional<Result<std::string>> user;
  TokenApi api(world.cluster, "system:anonymous");
  ask_who_we_are(api, [&](const Result<std::string>& answer) { user = answer; });
  ASSERT_TRUE(world.until([&] { return user.has_value(); }));
  EXPECT_EQ(user->error().code, Code::forbidden);
}

TEST(Callers, each_sees_what_their_own_token_may_read) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice"), bob = world.sign_in("bob.1", "bob");
  EXPECT_TRUE(world.comes_to_see(alice, "job-of-alice"));
  EXPECT_TRUE(world.comes_to_see(bob, "job-of-bob"));
  EXPECT_EQ(world.get("/api/jobs/alice/job-of-alice", bob).status, 404);
  EXPECT_EQ(world.post("/api/namespace", R"({"namespace": "alice"})", bob).status, 200);
  EXPECT_TRUE(world.until(
      [&] { return !body_of(world.get("/api/jobs", bob))["problem"].get<std::string>().empty(); }));
  EXPECT_THAT(world.get("/api/jobs", bob).body, HasSubstr("bob cannot list trainingjobs in alice"));
  EXPECT_TRUE(world.jobs(bob).empty()) << "nothing is left of the other namespace, either";
  EXPECT_TRUE(world.comes_to_see(alice, "job-of-alice"));
}

TEST(Callers, a_proxy_in_front_may_show_the_token_of_each_request) {
  World world;
  const json session = body_of(world.get("/api/session", kByProxy));
  EXPECT_EQ(session["user"], "alice");
  EXPECT_EQ(session["of_a_header"], true);
  EXPECT_EQ(world.post("/api/namespace", R"({"namespace": "alice"})", kByProxy).status, 200);
  EXPECT_TRUE(world.comes_to_see(kByProxy, "job-of-alice"));
  EXPECT_EQ(world.cluster.reviews, 1) << "the same token is the same caller";
  EXPECT_EQ(world.callers.count(), 1U);
  EXPECT_EQ(world.post("/api/sign-out", "{}", kByProxy).status, 409);
  const auto bob = world.sign_in("bob.1", "bob");
  EXPECT_EQ(body_of(world.get("/api/session", {kByProxy[0], bob[0]}))["user"], "alice")
      << "the header counts";
}

TEST(Callers, a_page_that_begins_is_told_whether_to_sign_in) {
  World world;
  const HttpReply reply = world.get("/api/session", kNobody);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(body_of(reply), json::parse(R"({"sign_in":true,"user":null,"namespace":""})"));
  EXPECT_EQ(body_of(world.get("/api/session", world.sign_in("alice.1", "alice")))["user"], "alice");
  EXPECT_EQ(world.get("/", kNobody).status, 200) << "the files of the page are for all";
  EXPECT_EQ(world.get("/healthz", kNobody).body, "ok\n");
  EXPECT_EQ(world.site.answer({.method = "GET", .target = "/healthz", .headers = {}}).status, 200)
      << "a probe calls it by its address";
  EXPECT_EQ(world.site.answer({.method = "GET", .target = "/", .headers = {}}).status, 403);
}

TEST(Callers, bad_posts_are_refused) {
  World world;
  for (const char* body : {"", "[]", "{", R"({"namespace": "A"})", R"({"namespace": "a/b"})",
                           R"({"namespace": "-a"})"}) {
    EXPECT_EQ(world.post("/api/sign-in", body).status, 400) << body;
    EXPECT_EQ(world.post("/api/namespace", body, kByProxy).status, 400) << body;
  }
  EXPECT_EQ(world.post("/api/namespace", "{}").status, 401);
  EXPECT_EQ(world.post("/api/jobs", "{}", kByProxy).status, 404);
}

TEST(Callers, who_signs_out_is_out) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice"), other = world.sign_in("alice.1", "alice");
  const HttpReply reply = world.post("/api/sign-out", "{}", alice);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.headers,
              testing::Contains(testing::Pair("Set-Cookie", HasSubstr("Max-Age=0"))));
  EXPECT_EQ(world.get("/api/jobs", alice).status, 401);
  EXPECT_EQ(world.get("/api/jobs", other).status, 200) << "another session of the same person";
}

TEST(Callers, an_open_log_ends_with_its_session) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice");
  ASSERT_TRUE(world.comes_to_see(alice, "job-of-alice"));
  HttpReply reply = world.get("/api/jobs/alice/job-of-alice/log", alice);
  ASSERT_NE(reply.stream, nullptr);
  std::vector<std::optional<std::string>> chunks;
  const auto take = [&](std::optional<std::string> chunk) { chunks.push_back(std::move(chunk)); };
  reply.stream->next(take);
  (void)world.post("/api/sign-out", "{}", alice);
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_THAT(chunks[0].value_or(""), HasSubstr("event: end"));
  EXPECT_THAT(chunks[0].value_or(""), HasSubstr("you have signed out"));
  reply.stream->next(take);
  EXPECT_EQ(chunks.back(), std::nullopt);
}

TEST(Callers, who_is_idle_goes_and_who_looks_stays_for_half_a_day) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice"), bob = world.sign_in("bob.1", "bob");
  world.now += Callers::kIdleMax;
  EXPECT_EQ(world.get("/api/jobs", bob).status, 200);
  world.now += 1s;
  world.callers.sweep();
  const HttpReply reply = world.get("/api/jobs", alice);
  EXPECT_EQ(reply.status, 401);
  EXPECT_THAT(reply.body, HasSubstr("Your session has ended: nobody has looked at it"));
  for (int turn = 0; turn < 23; ++turn) {
    EXPECT_EQ(world.get("/api/jobs", bob).status, 200) << turn;
    world.now += Callers::kIdleMax;
    world.callers.sweep();
  }
  EXPECT_EQ(world.get("/api/jobs", bob).status, 401);
}

TEST(Callers, a_token_that_the_cluster_takes_no_more_ends_its_session) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice"), bob = world.sign_in("bob.1", "bob");
  world.cluster.users.erase("alice");
  world.callers.sweep();
  EXPECT_EQ(world.get("/api/session", alice).status, 200) << "it is not asked about all the time";
  world.now += 1min;
  world.callers.sweep();
  EXPECT_TRUE(world.until([&] { return world.get("/api/jobs", alice).status == 401; }));
  EXPECT_THAT(world.get("/api/jobs", alice).body, HasSubstr("does not take your token any more"));
  EXPECT_EQ(world.get("/api/jobs", bob).status, 200);
}

TEST(Callers, a_server_that_gives_no_answer_ends_no_session) {
  World world;
  const auto alice = world.sign_in("alice.1", "alice");
  world.cluster.is_down = true;
  world.now += 1min;
  world.callers.sweep();
  EXPECT_EQ(world.try_sign_in("bob.1", "bob").status, 503) << "answered after the sweep's question";
  EXPECT_EQ(world.get("/api/jobs", alice).status, 200);
}

TEST(Callers, one_person_takes_four_places_and_not_all) {
  World world;
  const auto bob = world.sign_in("bob.1", "bob");
  std::vector<HttpHeaders> sessions;
  for (std::size_t i = 0; i < Callers::kOfOneUserMax + 1; ++i) {
    world.now += 1s;
    sessions.push_back(world.sign_in("alice." + std::to_string(i), "alice"));
  }
  EXPECT_EQ(world.callers.count(), Callers::kOfOneUserMax + 1);
  EXPECT_EQ(world.get("/api/jobs", sessions.front()).status, 401);
  EXPECT_EQ(world.get("/api/jobs", sessions.back()).status, 200);
  EXPECT_EQ(world.get("/api/jobs", bob).status, 200);
}

TEST(Callers, who_has_been_idle_longest_makes_room) {
  World world;
  std::vector<HttpHeaders> sessions;
  for (std::size_t i = 0; i <= Callers::kCallersMax; ++i) {
    const std::string user = "user" + std::to_string(i);
    world.cluster.users.insert(user);
    world.now += 1s;
    if (i == Callers::kCallersMax) {
      EXPECT_EQ(world.get("/api/jobs", sessions[0]).status, 200);
    }
    sessions.push_back(world.sign_in(user + ".1", user));
  }
  EXPECT_EQ(world.callers.count(), Callers::kCallersMax);
  EXPECT_EQ(world.get("/api/jobs", sessions[0]).status, 200);
  EXPECT_EQ(world.get("/api/jobs", sessions[1]).status, 401);
}

TEST(Callers, new_tokens_are_asked_about_a_few_at_a_time) {
  World world;
  int refused = 0, answered = 0;
  for (std::size_t i = 0; i < Callers::kChecksMax + 3; ++i)
    world.callers.sign_in({.token = "mallory." + std::to_string(i), .ns = ""},
                          [&](const Result<Callers::SignedIn>& in) {
                            ++answered;
                            if (!in && in.error().code == Code::unavailable) ++refused;
                          });
  EXPECT_EQ(refused, 3);
  EXPECT_TRUE(world.until([&] { return answered == static_cast<int>(Callers::kChecksMax) + 3; }));
}

TEST(Callers, what_is_told_holds_no_token_and_no_session) {
  World world;
  const auto alice = world.sign_in("alice.secret", "alice");
  (void)world.try_sign_in("mallory.secret", "");
  (void)world.post("/api/sign-out", "{}", alice);
  std::string all;
  for (const std::string& line : world.told) all += line + "\n";
  EXPECT_EQ(world.told.size(), 3U) << all;
  EXPECT_THAT(all, HasSubstr("signed in: alice\n"));
  EXPECT_THAT(all, HasSubstr("signed out: alice: you have signed out\n"));
  const std::string cookie = alice.at(0).second;
  for (const std::string& secret : {std::string("secret"), cookie.substr(cookie.find('=') + 1)})
    EXPECT_THAT(all, Not(HasSubstr(secret)));
}

}  // namespace
}  // namespace tj::ui
