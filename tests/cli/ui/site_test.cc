// Where paths lead, and what is answered, over a board and a feed of the test's own.
#include "cli/ui/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/ui/page_files.h"

namespace tj::ui {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class SilentLog final : public HttpStream {
 public:
  void next(Give) override {}
};

class TestFeed final : public Feed {
 public:
  void start() override {}
  std::string name() const override { return "a test"; }
  std::string problem() const override { return problem_text; }
  void look_at(const ObjectKey& job) override { looked_at.push_back(job); }
  void look_at_all() override {}
  std::unique_ptr<HttpStream> open_log(const LogQuestion& question) override {
    asked = question;
    return std::make_unique<SilentLog>();
  }

  std::string problem_text;
  std::vector<ObjectKey> looked_at;
  LogQuestion asked;
};

struct World {
  Gate gate{.token = std::string(kTokenCharacters, 'a'), .port = 4711};
  Board board;
  TestFeed feed;
  Site site{board, feed};

  World() {
    const json job = {{"metadata", {{"name", "mnist"}, {"namespace", "default"}, {"uid", "1"}}},
                      {"status", {{"phase", "Running"}, {"attempt", 2}}}};
    board.apply_jobs(Upsert{std::make_shared<const json>(job)}, {});
  }
  HttpReply get(const std::string& target, HttpHeaders headers = {}) {
    headers.insert(headers.end(),
                   {{"host", "127.0.0.1:4711"}, {"authorization", "Bearer " + gate.token}});
    return site.answer({.method = "GET", .target = target, .headers = std::move(headers)}, gate);
  }
};

std::string header(const HttpReply& reply, const std::string& name) {
  for (const auto& [known, value] : reply.headers) {
    if (known == name) return value;
  }
  return "";
}

TEST(Routes, lead_to_files_and_documents) {
  const ObjectKey job{"a b", "m/x"};
  EXPECT_EQ(route_of("/"), Route(ToFile{"index.html"}));
  EXPECT_EQ(route_of("/?x=1"), Route(ToFile{"index.html"}));
  EXPECT_EQ(route_of("/vendor/uPlot.min.css"), Route(ToFile{"vendor/uPlot.min.css"}));
  EXPECT_EQ(route_of("/api/session"), Route(ToSession{}));
  EXPECT_EQ(route_of("/api/jobs"), Route(ToJobs{}));
  EXPECT_EQ(route_of("/api/jobs?x"), Route(ToJobs{}));
  EXPECT_EQ(route_of("/api/jobs/a%20b/m%2Fx"), Route(ToJob{job}));
  EXPECT_EQ(route_of("/api/jobs/a%20b/m%2Fx/series"), Route(ToSeries{job}));
  EXPECT_EQ(route_of("/api/jobs/a%20b/m%2Fx/log?rank=1"), Route(ToLog{job}));
  for (const char* target :
       {"", "x", "/api", "/api/", "/api/pods", "/api/jobs/", "/api/jobs/a", "/api/jobs//b",
        "/api/jobs/a/", "/api/jobs/a/b/c", "/api/jobs/a/b/log/d"})
    EXPECT_EQ(route_of(target), Route(Nowhere{})) << target;
  EXPECT_EQ(route_of("/api/jobs/a/" + std::string(300, 'x')), Route(Nowhere{}));
}

TEST(Site, judges_before_it_answers) {
  World world;
  const HttpReply reply = world.site.answer(
      {.method = "GET", .target = "/api/jobs", .headers = {{"host", "127.0.0.1:4711"}}},
      world.gate);
  EXPECT_EQ(reply.status, 401);
  EXPECT_THAT(reply.body, testing::Not(HasSubstr("mnist")));
  EXPECT_THAT(header(reply, "Content-Security-Policy"), HasSubstr("default-src 'self'"));
}

TEST(Site, takes_the_token_out_of_the_address) {
  World world;
  const HttpReply reply = world.get("/?token=" + world.gate.token);
  EXPECT_EQ(reply.status, 303);
  EXPECT_EQ(header(reply, "Location"), "/");
  EXPECT_EQ(header(reply, "Set-Cookie"), cookie_header(world.gate));
}

TEST(Site, has_every_file_of_the_page_and_no_other) {
  World world;
  ASSERT_GE(page_files().size(), 10U);
  for (const PageFile& file : page_files()) {
    const HttpReply reply = world.get("/" + std::string(file.path));
    EXPECT_EQ(reply.status, 200) << file.path;
    EXPECT_EQ(reply.body, file.bytes) << file.path;
    EXPECT_EQ(header(reply, "X-Content-Type-Options"), "nosniff");
  }
  EXPECT_THAT(world.get("/").body, HasSubstr("<!doctype html>"));
  EXPECT_EQ(world.get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(world.get("/app.js").content_type, "text/javascript; charset=utf-8");
  for (const char* path :
       {"/../cli/main.cc", "/%2e%2e/main.cc", "/index.html/", "/etc/passwd", "//index.html"})
    EXPECT_EQ(world.get(path).status, 404) << path;
}

TEST(Site, tells_of_jobs_and_of_what_is_wrong) {
  World world;
  world.feed.problem_text = "no \xff right";
  const HttpReply reply = world.get("/api/jobs");
  const json all = json::parse(reply.body);
  EXPECT_EQ(all["jobs"][0]["name"], "mnist");
  EXPECT_EQ(all["source"], "a test");
  EXPECT_EQ(all["problem"], "no \xef\xbf\xbd right");
  EXPECT_EQ(json::parse(world.get("/api/jobs/default/mnist").body)["job"]["phase"], "Running");
  EXPECT_THAT(world.feed.looked_at, testing::ElementsAre(ObjectKey{"default", "mnist"}));
  EXPECT_EQ(world.get("/api/jobs/default/mnist/series").status, 200);
  for (const char* path :
       {"/api/jobs/default/none", "/api/jobs/default/none/series", "/api/jobs/default/none/log"})
    EXPECT_EQ(world.get(path).status, 404) << path;
}

TEST(Site, needs_no_sign_in_beside_its_token) {
  World world;
  EXPECT_EQ(json::parse(world.get("/api/session").body), json({{"sign_in", false}}));
}

TEST(Site, names_that_are_no_text_are_not_found) {
  World world;
  const HttpReply reply = world.get("/api/jobs/%ff/%fe");
  EXPECT_EQ(reply.status, 404);
  EXPECT_THAT(reply.body, HasSubstr("there is no job \xef\xbf\xbd/"));
}

TEST(Site, opens_the_log_of_a_rank_of_an_attempt) {
  World world;
  const HttpReply reply =
      world.get("/api/jobs/default/mnist/log?rank=3&attempt=1", {{"last-event-id", "77"}});
  EXPECT_EQ(reply.content_type, "text/event-stream; charset=utf-8");
  ASSERT_NE(reply.stream, nullptr);
  EXPECT_THAT(reply.headers, testing::Contains(testing::Pair("X-Accel-Buffering", "no")));
  EXPECT_EQ(world.feed.asked.rank, 3);
  EXPECT_EQ(world.feed.asked.attempt, 1);
  EXPECT_EQ(world.feed.asked.last_id, "77");
  (void)world.get("/api/jobs/default/mnist/log?rank=-1&attempt=x");
  EXPECT_EQ(world.feed.asked.rank, 0);
  EXPECT_EQ(world.feed.asked.attempt, 2) << "the job's own";
  EXPECT_EQ(
      world.get("/api/jobs/default/mnist/log", {{"last-event-id", std::string(65, '1')}}).status,
      400);
}

TEST(Site, has_a_bound_on_logs_that_are_open) {
  World world;
  std::vector<HttpReply> open;
  for (int i = 0; i < Site::kLogsMax; ++i) open.push_back(world.get("/api/jobs/default/mnist/log"));
  EXPECT_EQ(world.get("/api/jobs/default/mnist/log").status, 429);
  open.pop_back();
  EXPECT_EQ(world.get("/api/jobs/default/mnist/log").status, 200);
}

}  // namespace
}  // namespace tj::ui
