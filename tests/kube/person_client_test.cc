// What only a person's client can do: proxies, IPv6 servers, log-in plug-ins, servers that are not
// verified or speak no TLS, logs as text, and a bound for what is under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/kube/fake_proxy.h"
#include "tests/kube/rest_fixture.h"

namespace tj {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class PersonClient : public testing::Test {
 protected:
  void serve(FaultServer::Handler handler, const std::string& address = "127.0.0.1",
             const CertificateSpec& spec = {}) {
    server_ = std::make_unique<FaultServer>(test_ca().issue(spec), std::move(handler), address);
  }
  void connect(const KubeConfig& config, RestOptions options = {}) {
    api_ = make_client(Client::of_person, loop_, config, std::move(options));
  }
  std::string ask() {
    const auto answer = loop_.ask(*api_, get_pod());
    return answer ? *answer
                  : std::string(to_string(answer.error().code)) + ": " + describe(answer.error());
  }
  static Reply fine(const std::string&) { return reply(200, "{}"); }

  ClientLoop loop_;
  std::unique_ptr<FaultServer> server_;
  std::unique_ptr<KubeApi> api_;
};

TEST_F(PersonClient, an_ipv6_server_is_reached_and_verified) {
  boost::asio::io_context io;
  boost::system::error_code none;
  boost::asio::ip::tcp::acceptor probe(io);
  probe.open(boost::asio::ip::tcp::v6(), none);
  if (!none) probe.bind({boost::asio::ip::make_address("::1"), 0}, none);
  if (none) GTEST_SKIP() << "no IPv6 on loopback: " << none.message();
  serve(fine, "::1", {.names = "IP:::1"});
  ASSERT_THAT(server_->url(), HasSubstr("https://[::1]:"));
  connect(config_for(server_->url()));
  EXPECT_EQ(ask(), "{}");
  EXPECT_THAT(server_->requests().front(), HasSubstr("Host: [::1]:"));
  serve(fine, "::1", {.names = "IP:::2"});
  connect(config_for(server_->url()));
  EXPECT_THAT(ask(), HasSubstr("IP Address:0:0:0:0:0:0:0:2, not for ::1"));
}

TEST_F(PersonClient, each_kind_of_proxy_leads_to_the_server) {
  serve(fine);
  const Issued proxys = test_ca().issue({.common_name = "proxy"});
  struct Row {
    std::string scheme, login, asked;
    std::optional<Issued> identity;
  };
  const std::string port = std::to_string(server_->port());
  const std::vector<Row> table = {{"http", "", "CONNECT api.test:" + port, {}},
                                  {"http", "me:pass", "CONNECT api.test:" + port, {}},
                                  {"https", "", "CONNECT api.test:" + port, proxys},
                                  {"socks5", "", "SOCKS api.test:" + port, {}},
                                  {"socks5", "me:pass", "SOCKS api.test:" + port, {}}};
  for (const Row& row : table) {
    const FakeProxy proxy(
        {.wanted_login = row.login, .target_port = server_->port(), .identity = row.identity});
    KubeConfig config = config_for("https://api.test:" + port);  // only the proxy knows this name
    config.tls_server_name = "127.0.0.1";
    config.proxy_url = proxy.url(row.scheme, row.login);
    connect(config);
    EXPECT_EQ(ask(), "{}") << row.scheme << " " << row.login;
    EXPECT_EQ(ask(), "{}") << row.scheme << ": the kept connection";
    EXPECT_THAT(proxy.asked(), ElementsAre(row.asked)) << row.scheme << " " << row.login;
    api_.reset();
  }
}

TEST_F(PersonClient, a_proxy_that_refuses_is_named) {
  serve(fine);
  const FakeProxy proxy({.wanted_login = "me:pass", .target_port = server_->port()});
  KubeConfig config = config_for(server_->url());
  config.proxy_url = proxy.url("http", "me:wrong");
  connect(config);
  EXPECT_THAT(ask(), AllOf(HasSubstr("unavailable: "), HasSubstr("the proxy 127.0.0.1:"),
                           HasSubstr("HTTP 407"), Not(HasSubstr("wrong"))));
  config.proxy_url = proxy.url("socks5", "me:wrong");
  connect(config);
  EXPECT_THAT(ask(), HasSubstr("does not accept the user and the password"));
  config.proxy_url = "http://127.0.0.1:1";
  connect(config);
  EXPECT_THAT(ask(), HasSubstr("the proxy 127.0.0.1:1: can't connect: connection refused"));
  EXPECT_THAT(server_->requests(), SizeIs(0));
}

TEST_F(PersonClient, a_server_that_is_not_verified_is_only_then_believed) {
  serve(fine, "127.0.0.1", {.names = "DNS:elsewhere"});
  KubeConfig config = config_for(server_->url());
  config.ca_pem = "";
  connect(config);
  EXPECT_THAT(ask(), HasSubstr("certificate"));
  config.insecure_skip_tls_verify = true;
  connect(config);
  EXPECT_EQ(ask(), "{}");
}

TEST_F(PersonClient, a_server_without_tls_is_reached_by_http) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor plain(io, {boost::asio::ip::make_address("127.0.0.1"), 0});
  std::jthread serve_once([&] {
    auto socket = plain.accept();
    std::string head;
    boost::system::error_code ignored;
    boost::asio::read_until(socket, boost::asio::dynamic_buffer(head), "\r\n\r\n", ignored);
    boost::asio::write(socket, boost::asio::buffer(reply(200, "{}").pieces.front()), ignored);
  });
  connect({.server = "http://127.0.0.1:" + std::to_string(plain.local_endpoint().port())});
  EXPECT_EQ(ask(), "{}");
}

TEST_F(PersonClient, a_plug_in_is_asked_again_after_a_401) {
  const std::filesystem::path counter =
      std::filesystem::path(testing::TempDir()) / ("tj_plug_in_count_" + std::to_string(getpid()));
  std::filesystem::remove(counter);
  serve([](const std::string& request) {
    const bool is_second = request.find("Bearer tt\r\n") != std::string::npos;
    return is_second ? reply(200, "{}") : reply(401, status_body(401, "Unauthorized"));
  });
  KubeConfig config = config_for(server_->url());
  config.token = "";
  config.exec =
      ExecPlugIn{.api_version = "client.authentication.k8s.io/v1",
                 .command = "sh",
                 .args = {"-c", "printf t >>" + counter.string() +
                                    R"(; printf '{"kind":"ExecCredential","apiVersion":)"
                                    R"("client.authentication.k8s.io/v1","status":{"token":"%s"}}')"
                                    " \"$(cat " +
                                    counter.string() + ")\""},
                 .interactive = ExecPlugIn::Interactive::never,
                 .field = "kc: users[u].user.exec"};
  connect(config);
  EXPECT_EQ(ask(), "{}");
  EXPECT_EQ(ask(), "{}");
  EXPECT_THAT(server_->requests(), SizeIs(3)) << "one was refused; the plug-in ran twice";
  std::filesystem::remove(counter);
  config.exec->args = {"-c", "exit 7"};
  connect(config);
  EXPECT_EQ(ask(), "forbidden: kc: users[u].user.exec: sh: failed with exit code 7");
}

TEST_F(PersonClient, a_log_is_text_line_by_line) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("a\n\nb"), chunk("c\n" + std::string(20, ' ')),
                            chunk("the end"), chunk("")}};
  });
  connect(config_for(server_->url()));
  WatchLog log;
  const auto stream = api_->watch(
      {.resource = Resource::pods, .ns = "n", .log = LogOptions{.follow = true}, .name = "p"},
      log.handler());
  ASSERT_TRUE(loop_.run_until([&] { return log.end.has_value(); }));
  EXPECT_TRUE(log.end->ok()) << describe(log.end->error());
  EXPECT_THAT(log.lines, ElementsAre("a", "", "bc", std::string(20, ' ') + "the end"))
      << "empty lines count, and a last one without its end";
  EXPECT_THAT(server_->requests().front(),
              HasSubstr("/api/v1/namespaces/n/pods/p/log?follow=true"));
}

TEST_F(PersonClient, many_streams_at_once_lose_and_repeat_nothing) {
  constexpr int kStreams = 64;
  constexpr int kLines = 1'000;
  serve([](const std::string& request) {
    const std::string pod = request.substr(0, request.find("/log"));
    Reply answer{.pieces = {chunked_head()}};
    for (int i = 0; i < kLines; i += 50) {
      std::string lines;
      for (int j = i; j < i + 50; ++j)
        lines += pod.substr(pod.rfind('/') + 1) + " " + std::to_string(j) + "\n";
      answer.pieces.push_back(chunk(lines));
    }
    answer.pieces.push_back(chunk(""));
    return answer;
  });
  connect(config_for(server_->url()));
  std::vector<WatchLog> logs(kStreams);
  std::vector<std::unique_ptr<WatchStream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.push_back(api_->watch({.resource = Resource::pods,
                                   .ns = "n",
                                   .log = LogOptions{.follow = true},
                                   .name = "p" + std::to_string(i)},
                                  logs[static_cast<std::size_t>(i)].handler()));
  }
  const auto has_ended = [](const WatchLog& log) { return log.end.has_value(); };
  ASSERT_TRUE(loop_.run_until([&] { return std::all_of(logs.begin(), logs.end(), has_ended); }));
  for (std::size_t i = 0; i < logs.size(); ++i) {
    ASSERT_TRUE(logs[i].end->ok()) << describe(logs[i].end->error());
    ASSERT_THAT(logs[i].lines, SizeIs(kLines));
    for (std::size_t j = 0; j < kLines; ++j)
      ASSERT_EQ(logs[i].lines[j], "p" + std::to_string(i) + " " + std::to_string(j));
  }
}

TEST_F(PersonClient, a_connection_that_died_while_idle_is_not_used) {
  serve([](const std::string&) {
    Reply answer = reply(200, "{}");
    answer.after = After::close;
    return answer;
  });
  connect(config_for(server_->url()));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask(), "{}") << i;
}

TEST_F(PersonClient, many_requests_share_few_connections) {
  serve(fine);
  connect(config_for(server_->url()));
  int answers = 0;
  for (int i = 0; i < 200; ++i) {
    api_->send(get_pod(), [&](Result<std::string> answer) { answers += answer.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(loop_.run_until([&] { return answers == 200; }));
  EXPECT_LE(server_->connections(), 200 / 4) << "16 at a time, and all are kept";
}

TEST_F(PersonClient, a_kept_connection_never_delivers_anothers_answer) {
  serve([](const std::string& request) {
    const bool is_slow = request.find("pods/slow") != std::string::npos;
    if (is_slow) return Reply{.pieces = {}, .after = After::hang};
    return reply(200, R"({"quick":1})");
  });
  connect(config_for(server_->url()));
  EXPECT_EQ(ask(), R"({"quick":1})");
  Request slow = get_pod();
  slow.name = "slow";
  slow.deadline = milliseconds(100);
  EXPECT_EQ(loop_.ask(*api_, slow).error().code, Code::timeout);
  EXPECT_EQ(ask(), R"({"quick":1})");
}

}  // namespace
}  // namespace tj
