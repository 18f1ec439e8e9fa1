// What may come in to a page of several people: names, origins, methods, and the cookie.
#include "cli/ui/front.h"

#include <gtest/gtest.h>

namespace tj::ui {
namespace {

const Front kFront{.hosts = {"jobs.example.org", "page.ops.svc"}};

HttpQuestion asks(const std::string& host, HttpHeaders headers = {},
                  const std::string& method = "GET") {
  headers.insert(headers.begin(), {"host", host});
  return {.method = method, .target = "/api/jobs", .headers = std::move(headers)};
}

int status_of(const HttpQuestion& question) {
  const Verdict verdict = judge_front(question, kFront);
  return verdict.entry == Entry::allowed ? 200 : verdict.status;
}

HttpHeaders json_of(const std::string& origin) {
  return {{"origin", origin}, {"content-type", "application/json"}};
}

TEST(Front, is_reached_by_its_own_names_and_by_those_of_loopback) {
  for (const char* host : {"jobs.example.org", "Jobs.Example.org:443", "page.ops.svc:8080",
                           "localhost:8080", "127.0.0.1:1", "[::1]:8080", "localhost"})
    EXPECT_EQ(status_of(asks(host)), 200) << host;
}

TEST(Front, a_name_that_was_bound_to_its_address_by_somebody_else_is_refused) {
  for (const char* host :
       {"evil.example", "evil.example:8080", "jobs.example.org.evil.example", "10.0.0.7:8080", "",
        "localhost:x", "localhost:8080.evil.example", "[::2]:8080", "[::1"})
    EXPECT_EQ(status_of(asks(host)), 403) << host;
  EXPECT_EQ(status_of(asks("localhost", {{"host", "localhost"}})), 403) << "twice";
  EXPECT_EQ(status_of({.method = "GET", .target = "/", .headers = {}}), 403);
}

TEST(Front, refuses_other_origins_and_sites) {
  for (const char* origin : {"http://evil.example", "null", "https://jobs.example.org:444",
                             "https://jobs.example.org.evil.example", "ftp://jobs.example.org"})
    EXPECT_EQ(status_of(asks("jobs.example.org", {{"origin", origin}})), 403) << origin;
  EXPECT_EQ(status_of(asks("jobs.example.org", {{"origin", "https://Jobs.example.org"}})), 200);
  EXPECT_EQ(status_of(asks("localhost:8080", {{"origin", "http://localhost:8080"}})), 200);
  for (const char* site : {"cross-site", "same-site"})
    EXPECT_EQ(status_of(asks("jobs.example.org", {{"sec-fetch-site", site}})), 403) << site;
}

TEST(Front, behind_tls_an_origin_without_it_is_another_one) {
  const HttpHeaders plain = {{"origin", "http://jobs.example.org"}};
  EXPECT_EQ(status_of(asks("jobs.example.org", plain)), 200);
  EXPECT_EQ(status_of(asks("jobs.example.org", {plain[0], {"x-forwarded-proto", "https"}})), 403);
}

TEST(Front, only_its_own_page_can_post) {
  EXPECT_EQ(status_of(asks("jobs.example.org", json_of("https://jobs.example.org"), "POST")), 200);
  EXPECT_EQ(status_of(asks("jobs.example.org", json_of("https://evil.example"), "POST")), 403);
  EXPECT_EQ(status_of(asks("jobs.example.org", {{"content-type", "application/json"}}, "POST")),
            403)
      << "without an origin";
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", ""})
    EXPECT_EQ(status_of(asks("localhost", {{"origin", "http://localhost"}, {"content-type", type}},
                             "POST")),
              415)
        << type;
  for (const char* method : {"PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
    EXPECT_EQ(status_of(asks("localhost", json_of("http://localhost"), method)), 405) << method;
}

TEST(Front, the_cookie_is_for_no_script_and_behind_tls_for_tls_alone) {
  EXPECT_EQ(session_cookie(asks("localhost:8080"), "abc"),
            "tj-page-8080=abc; Path=/; HttpOnly; SameSite=Strict");
  const HttpQuestion over_tls = asks("jobs.example.org", {{"x-forwarded-proto", "https, http"}});
  EXPECT_EQ(session_cookie(over_tls, "abc"),
            "__Host-tj-page=abc; Path=/; HttpOnly; SameSite=Strict; Secure");
  EXPECT_EQ(session_cookie_removal(asks("localhost")),
            "tj-page=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
}

TEST(Front, sees_what_is_shown) {
  const Shown both = shown_by(
      asks("localhost:8080", {{"authorization", "Bearer t"}, {"cookie", "a=b; tj-page-8080=abc"}}));
  EXPECT_EQ(both.bearer, "t");
  EXPECT_EQ(both.session, "abc");
  EXPECT_FALSE(shown_by(asks("localhost:8081", {{"cookie", "tj-page-8080=abc"}})).session);
  EXPECT_FALSE(shown_by(asks("localhost", {{"authorization", "Basic dDp0"}})).bearer);
}

}  // namespace
}  // namespace tj::ui
