// Who is let in to the page: token, cookie, Host, Origin and what a browser says of a request.
#include "cli/ui/gate.h"

#include <gtest/gtest.h>

namespace tj::ui {
namespace {

const Gate kGate{.token = std::string(kTokenCharacters, 'a'), .port = 4711};
const std::string kCookie = "tj-ui-4711=" + kGate.token;

HttpQuestion asks(const std::string& target, HttpHeaders headers,
                  const std::string& method = "GET") {
  headers.insert(headers.begin(), {"host", "127.0.0.1:4711"});
  return {.method = method, .target = target, .headers = std::move(headers)};
}

int status_of(const HttpQuestion& question) { return judge(question, kGate).status; }

TEST(Gate, lets_in_who_has_the_token) {
  EXPECT_EQ(judge(asks("/", {{"cookie", kCookie}}), kGate).entry, Entry::allowed);
  EXPECT_EQ(judge(asks("/", {{"cookie", "a=b; " + kCookie + "; c=d"}}), kGate).entry,
            Entry::allowed);
  EXPECT_EQ(judge(asks("/api/jobs", {{"authorization", "Bearer " + kGate.token}}), kGate).entry,
            Entry::allowed);
  EXPECT_EQ(judge(asks("/?token=" + kGate.token, {}), kGate).entry, Entry::sets_cookie);
}

TEST(Gate, refuses_a_missing_token_with_401_and_a_wrong_one_with_403) {
  const std::string other = kGate.token.substr(1) + "b";
  EXPECT_EQ(status_of(asks("/api/jobs", {})), 401);
  EXPECT_EQ(status_of(asks("/?token=", {})), 401);
  EXPECT_EQ(status_of(asks("/", {{"cookie", "tj-ui-4712=" + kGate.token}})), 401)
      << "another port's";
  EXPECT_EQ(status_of(asks("/", {{"cookie", "tj-ui-4711=" + other}})), 403);
  EXPECT_EQ(status_of(asks("/", {{"authorization", "Bearer " + kGate.token.substr(1)}})), 403);
  EXPECT_EQ(status_of(asks("/?token=" + other, {{"cookie", kCookie}})), 403);
}

TEST(Gate, refuses_what_would_change_something) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
    EXPECT_EQ(status_of(asks("/api/jobs", {{"cookie", kCookie}}, method)), 405) << method;
  EXPECT_EQ(judge(asks("/", {{"cookie", kCookie}}, "HEAD"), kGate).entry, Entry::allowed);
}

TEST(Gate, a_name_that_has_been_rebound_to_loopback_is_no_host_of_ours) {
  for (const char* host : {"evil.example:4711", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:47110",
                           "127.0.0.1:4711.evil.example", "[::1]:4711", ""}) {
    const HttpQuestion question{
        .method = "GET", .target = "/", .headers = {{"host", host}, {"cookie", kCookie}}};
    EXPECT_EQ(status_of(question), 403) << host;
  }
  EXPECT_EQ(status_of({.method = "GET", .target = "/", .headers = {{"cookie", kCookie}}}), 403);
  EXPECT_EQ(status_of(asks("/", {{"host", "127.0.0.1:4711"}, {"cookie", kCookie}})), 403)
      << "twice";
  const HttpQuestion by_name{
      .method = "GET", .target = "/", .headers = {{"host", "localhost:4711"}, {"cookie", kCookie}}};
  EXPECT_EQ(judge(by_name, kGate).entry, Entry::allowed);
}

TEST(Gate, refuses_other_origins_whatever_they_show) {
  for (const char* origin : {"http://evil.example", "null", "http://127.0.0.1:4712",
                             "https://127.0.0.1:4711", "http://localhost:4711"})
    EXPECT_EQ(status_of(asks("/api/jobs", {{"origin", origin}, {"cookie", kCookie}})), 403)
        << origin;
  EXPECT_EQ(
      judge(asks("/api/jobs", {{"origin", "http://127.0.0.1:4711"}, {"cookie", kCookie}}), kGate)
          .entry,
      Entry::allowed);
}

TEST(Gate, refuses_other_sites_but_for_a_link_to_the_page_itself) {
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(status_of(asks("/api/jobs", {{"sec-fetch-site", site}, {"cookie", kCookie}})), 403);
    const HttpHeaders link = {
        {"sec-fetch-site", site}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}};
    EXPECT_EQ(judge(asks("/?token=" + kGate.token, link), kGate).entry, Entry::sets_cookie);
    EXPECT_EQ(status_of(asks("/api/jobs?token=" + kGate.token, link)), 403);
    const HttpHeaders frame = {
        {"sec-fetch-site", site}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "iframe"}};
    EXPECT_EQ(status_of(asks("/?token=" + kGate.token, frame)), 403);
  }
}

TEST(Gate, a_cookie_is_for_this_port_and_for_no_script) {
  EXPECT_EQ(cookie_header(kGate), kCookie + "; Path=/; HttpOnly; SameSite=Strict");
}

TEST(Gate, tokens_are_long_and_never_the_same) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), kTokenCharacters);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, random_token());
}

TEST(Gate, compares_whole_tokens) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_in_constant_time("", "a"));
}

TEST(Gate, reads_parameters_of_an_address) {
  EXPECT_EQ(query_value("/?a=1&token=x%20y&b", "token"), "x y");
  EXPECT_EQ(query_value("/token=1", "token"), "");
  EXPECT_EQ(query_value("/?xtoken=1", "token"), "");
  EXPECT_EQ(percent_decoded("%41%4g%"), "A%4g%");
  EXPECT_EQ(percent_decoded("a%2fb%00"), std::string("a/b\0", 4));
}

}  // namespace
}  // namespace tj::ui
