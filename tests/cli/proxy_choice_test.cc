// URLs in parts, and whether a proxy stands in the way: the rules of Go's httpproxy, which are
// kubectl's.
#include "cli/cluster/proxy_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace tj {
namespace {
using testing::HasSubstr;

TEST(ServerUrls, are_read_in_parts) {
  struct Row {
    const char* text;
    ServerUrl url;
  };
  const std::vector<Row> table = {
      {"https://10.0.0.1:6443", {.scheme = "https", .host = "10.0.0.1", .port = 6443}},
      {"HTTPS://api.example/", {.scheme = "https", .host = "api.example", .port = 443}},
      {"https://[::1]:6443/a/b/", {.scheme = "https", .host = "::1", .port = 6443, .path = "/a/b"}},
      {"https://[fd00::1]", {.scheme = "https", .host = "fd00::1", .port = 443}},
      {"http://us%40er:p%3Aw@proxy:3128",
       {.scheme = "http", .user = "us@er", .password = "p:w", .host = "proxy", .port = 3128}},
      {"socks5://s", {.scheme = "socks5", .host = "s", .port = 1080}}};
  for (const Row& row : table) {
    const auto url = parse_server_url(row.text);
    ASSERT_TRUE(url) << row.text << ": " << describe(url.error());
    EXPECT_EQ(*url, row.url) << row.text;
  }
  EXPECT_EQ(host_and_port(*parse_server_url("https://[::1]:6443")), "[::1]:6443");
}

TEST(ServerUrls, that_are_none_say_why) {
  for (const char* text :
       {"", "x", "://x", "https://", "https://:1", "https://h:0", "https://h:65536", "https://h:1x",
        "https://[::1", "https://::1", "https://a b", "https://h/?q", "https://h\r\nX: y",
        "ftp://h", "https://[]:1", "https://[::1]x"}) {
    EXPECT_FALSE(parse_server_url(text)) << text;
  }
}

TEST(ProxyChoice, no_proxy_excepts_as_go_does) {
  struct Row {
    const char* no_proxy;
    const char* server;
    bool is_direct;
  };
  const std::vector<Row> table = {{"", "https://api.example.com", false},
                                  {"", "https://localhost:6443", true},
                                  {"", "https://127.0.0.2:6443", true},
                                  {"", "https://[::1]:6443", true},
                                  {"*", "https://api.example.com", true},
                                  {"example.com", "https://api.example.com", true},
                                  {"example.com", "https://example.com", true},
                                  {"example.com", "https://badexample.com", false},
                                  {".example.com", "https://api.example.com", true},
                                  {".example.com", "https://example.com", false},
                                  {"*.example.com", "https://api.example.com", true},
                                  {" Example.COM ,x", "https://API.example.com", true},
                                  {"example.com:443", "https://example.com", true},
                                  {"example.com:444", "https://example.com", false},
                                  {"10.0.0.1", "https://10.0.0.1:6443", true},
                                  {"10.0.0.1:1", "https://10.0.0.1:6443", false},
                                  {"10.0.0.0/8", "https://10.9.9.9:6443", true},
                                  {"10.0.0.0/8", "https://11.0.0.1:6443", false},
                                  {"10.0.0.0/99,x/y", "https://10.0.0.1:6443", false},
                                  {"fd00::/8", "https://[fd12::1]:6443", true},
                                  {"fd12::1", "https://[fd12::1]:6443", true},
                                  {"[fd12::1]:6443", "https://[fd12::1]:6443", true},
                                  {",, ,", "https://api.example.com", false}};
  for (const Row& row : table) {
    EXPECT_EQ(is_reached_directly(*parse_server_url(row.server), row.no_proxy), row.is_direct)
        << row.no_proxy << " " << row.server;
  }
}

class ProxyVariables : public testing::Test {
 protected:
  std::string chosen(const std::string& server, const std::string& proxy_url = "") {
    const KubeConfig config{.server = server, .proxy_url = proxy_url};
    const auto proxy = choose_proxy(config, *parse_server_url(server),
                                    [this](const char* name) { return env_[name]; });
    if (!proxy) return describe(proxy.error());
    return *proxy ? (*proxy)->scheme + " " + host_and_port(**proxy) : "direct";
  }
  std::map<std::string, std::string> env_;
};

TEST_F(ProxyVariables, are_read_as_go_reads_them) {
  EXPECT_EQ(chosen("https://api:6443"), "direct");
  env_["https_proxy"] = "lower:1";
  EXPECT_EQ(chosen("https://api:6443"), "http lower:1");
  env_["HTTPS_PROXY"] = "https://upper:2";
  EXPECT_EQ(chosen("https://api:6443"), "https upper:2");
  EXPECT_EQ(chosen("http://api:6443"), "direct");
  env_["NO_PROXY"] = "api";
  EXPECT_EQ(chosen("https://api:6443"), "direct");
  EXPECT_EQ(chosen("https://api:6443", "socks5://own:3"), "socks5 own:3")
      << "the kubeconfig's own holds whatever the variables say";
}

TEST_F(ProxyVariables, that_are_wrong_are_named_without_their_password) {
  env_["HTTPS_PROXY"] = "http://me:secret@h:x";
  EXPECT_THAT(chosen("https://api:6443"), HasSubstr("HTTPS_PROXY: is no URL of a proxy"));
  EXPECT_THAT(chosen("https://api:6443"), Not(HasSubstr("secret")));
  env_["HTTPS_PROXY"] = "gopher://h:70";
  EXPECT_THAT(chosen("https://api:6443"), HasSubstr("must be http, https or socks5"));
}

}  // namespace
}  // namespace tj
