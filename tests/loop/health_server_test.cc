// The health server over real sockets on the loopback, all on one io_context: client and server
// take turns, with a deadline and without threads.
#include "operator/loop/health_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using boost::system::error_code;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kDeadline{10};

struct Site {
  boost::asio::io_context loop;
  std::string reason = "waiting for the first list of pods";
  std::unique_ptr<HealthServer> server;

  Site() {
    auto listening = HealthServer::listen(loop, "127.0.0.1:0",
                                          {.not_ready_reason = [this] { return reason; },
                                           .metrics = [] { return "some_metric 1\n"; }});
    TJ_CHECK(listening.ok(), "listen");
    server = *std::move(listening);
  }
  tcp::endpoint endpoint() const {
    return {boost::asio::ip::make_address("127.0.0.1"),
            static_cast<unsigned short>(server->port())};
  }
  /// Sends `request` and returns everything until the server closes the connection.
  std::string talk(const std::string& request) {
    tcp::socket socket(loop);
    std::string answer;
    bool ended = false;
    socket.connect(endpoint());
    boost::asio::async_write(socket, boost::asio::buffer(request), [](error_code, std::size_t) {});
    boost::asio::async_read(socket, boost::asio::dynamic_buffer(answer),
                            [&](error_code, std::size_t) { ended = true; });
    loop.restart();
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!ended && std::chrono::steady_clock::now() < end) loop.run_one_for(100ms);
    EXPECT_TRUE(ended);
    return answer;
  }
  std::string fetch(const std::string& path, const std::string& method = "GET") {
    return talk(method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
};

TEST(HealthServer, is_healthy_while_the_loop_turns) {
  Site site;
  EXPECT_THAT(site.fetch("/healthz"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(HealthServer, is_ready_once_there_is_no_reason_against_it) {
  Site site;
  const std::string before = site.fetch("/readyz");
  EXPECT_THAT(before, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(before, HasSubstr("waiting for the first list of pods"));
  site.reason = "";
  EXPECT_THAT(site.fetch("/readyz"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(HealthServer, shows_the_metrics) {
  Site site;
  const std::string answer = site.fetch("/metrics?x=1");
  EXPECT_THAT(answer, HasSubstr("version=0.0.4"));
  EXPECT_THAT(answer, HasSubstr("some_metric 1\n"));
}

TEST(HealthServer, refuses_other_paths_and_methods) {
  Site site;
  EXPECT_THAT(site.fetch("/"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(site.fetch("/healthz", "POST"), StartsWith("HTTP/1.1 405"));
  const std::string head = site.fetch("/healthz", "HEAD");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, testing::EndsWith("\r\n\r\n"));
}

TEST(HealthServer, keeps_a_connection_for_the_next_request) {
  Site site;
  const std::string answer = site.talk(
      "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("ok\n"));
  EXPECT_THAT(answer, HasSubstr("some_metric 1\n"));
}

TEST(HealthServer, hangs_up_on_what_is_not_http_or_too_long) {
  Site site;
  EXPECT_EQ(site.talk("\x16\x03\x01 this is TLS\r\n\r\n"), "");
  EXPECT_EQ(site.talk("GET /" + std::string(20'000, 'x') + " HTTP/1.1\r\n\r\n"), "");
}

TEST(HealthServer, idle_clients_keep_nobody_waiting) {
  Site site;
  std::vector<tcp::socket> idle;
  for (int i = 0; i < HealthServer::kConnectionsMax; ++i) {
    idle.emplace_back(site.loop).connect(site.endpoint());
    site.loop.poll();
    site.loop.restart();
  }
  EXPECT_THAT(site.fetch("/healthz"), StartsWith("HTTP/1.1 200 OK"));
  const auto is_open = [](tcp::socket& socket) {
    socket.non_blocking(true);
    char byte = 0;
    error_code error;
    socket.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::would_block;
  };
  EXPECT_FALSE(is_open(idle.front())) << "who has been idle longest makes room";
  EXPECT_TRUE(is_open(idle[1]));
  EXPECT_TRUE(is_open(idle.back()));
}

TEST(HealthServer, on_a_port_for_probes_shows_no_metrics) {
  Site site;
  site.server = *HealthServer::listen(site.loop, "127.0.0.1:0",
                                      {.not_ready_reason = [] { return ""; }, .metrics = {}});
  EXPECT_THAT(site.fetch("/readyz"), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(site.fetch("/metrics"), StartsWith("HTTP/1.1 404"));
}

TEST(HealthServer, names_a_bad_address_and_a_port_in_use) {
  Site site;
  const std::string taken = "127.0.0.1:" + std::to_string(site.server->port());
  const auto second = HealthServer::listen(site.loop, taken, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(describe(second.error()), HasSubstr(taken));
  EXPECT_THAT(describe(second.error()), HasSubstr("in use"));
  for (const char* bad : {"8080", "localhost:80", "0.0.0.0:99999", "0.0.0.0:", ""}) {
    const auto listening = HealthServer::listen(site.loop, bad, {});
    ASSERT_FALSE(listening.ok()) << bad;
    EXPECT_EQ(listening.error().code, Code::invalid) << bad;
    EXPECT_THAT(describe(listening.error()), HasSubstr(bad));
  }
}

}  // namespace
}  // namespace tj
