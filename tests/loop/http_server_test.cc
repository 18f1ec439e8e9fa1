// The HTTP server over real sockets on the loopback: bodies that grow, and what becomes of them
// when a client goes. Plain answers are told by health_server_test.cc.
#include "operator/loop/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using boost::system::error_code;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::seconds kDeadline{10};

/// Gives what the test puts in; counts how many there are.
struct Source {
  std::vector<std::string> chunks;
  HttpStream::Give waiting;
  int alive = 0;

  void give(std::optional<std::string> chunk) { std::exchange(waiting, nullptr)(std::move(chunk)); }
};

class Stream final : public HttpStream {
 public:
  explicit Stream(Source& source) : source_(source) { ++source_.alive; }
  ~Stream() override {
    --source_.alive;
    source_.waiting = nullptr;
  }
  void next(Give give) override { source_.waiting = std::move(give); }

 private:
  Source& source_;
};

struct Site {
  boost::asio::io_context loop;
  Source source;
  HttpQuestion asked;
  std::unique_ptr<HttpServer> server;
  std::string read;  // by the client

  Site() {
    const tcp::endpoint any(boost::asio::ip::make_address("127.0.0.1"), 0);
    auto listening = HttpServer::listen(loop, any, {}, [this](const HttpQuestion& question) {
      asked = question;
      HttpReply reply{.headers = {{"X-Kind", "growing"}}};
      reply.stream = std::make_unique<Stream>(source);
      return reply;
    });
    TJ_CHECK(listening.ok(), "listen");
    server = *std::move(listening);
  }
  tcp::socket connect(const std::string& request) {
    tcp::socket socket(loop);
    socket.connect(tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"),
                                 static_cast<unsigned short>(server->port())));
    boost::asio::write(socket, boost::asio::buffer(request));
    return socket;
  }
  template <typename Condition>
  bool run_until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      loop.restart();
      loop.run_one_for(100ms);
    }
    return condition();
  }
  /// Reads on until `text` has come.
  bool read_until(tcp::socket& socket, const std::string& text) {
    bool is_there = false;
    bool has_ended = false;
    boost::asio::async_read_until(socket, boost::asio::dynamic_buffer(read), text,
                                  [&](error_code error, std::size_t) {
                                    is_there = !error;
                                    has_ended = true;
                                  });
    run_until([&] { return has_ended; });
    return is_there;
  }
};

constexpr const char* kRequest = "GET /log HTTP/1.1\r\nHost: x\r\nX-Twice: a\r\nX-Twice: b\r\n\r\n";

TEST(HttpServer, a_body_grows_chunk_by_chunk) {
  Site site;
  auto socket = site.connect(kRequest);
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  site.source.give("first");
  ASSERT_TRUE(site.read_until(socket, "first\r\n"));
  EXPECT_THAT(site.read, HasSubstr("X-Kind: growing"));
  EXPECT_THAT(site.read, HasSubstr("Transfer-Encoding: chunked"));
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }))
      << "asked again once it has been written";
  site.source.give("second");
  ASSERT_TRUE(site.read_until(socket, "6\r\nsecond\r\n"));
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  site.source.give({});
  EXPECT_TRUE(site.read_until(socket, "0\r\n\r\n"));
  EXPECT_TRUE(site.run_until([&] { return site.source.alive == 0; }));
}

TEST(HttpServer, a_client_that_goes_ends_its_body) {
  Site site;
  auto socket = site.connect(kRequest);
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  socket.close();
  EXPECT_TRUE(site.run_until([&] { return site.source.alive == 0; }))
      << "though nothing is written to it";
}

TEST(HttpServer, stop_ends_all_bodies) {
  Site site;
  auto socket = site.connect(kRequest);
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  site.server->stop();
  EXPECT_EQ(site.source.alive, 0);
}

TEST(HttpServer, an_old_client_gets_the_body_without_chunks) {
  Site site;
  auto socket = site.connect("GET /log HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  site.source.give("plain");
  ASSERT_TRUE(site.read_until(socket, "\r\n\r\nplain"));
}

TEST(HttpServer, an_answer_may_come_later_and_finds_nobody_who_has_gone) {
  boost::asio::io_context loop;
  std::vector<HttpReply::Give> waiting;
  std::string posted;
  const tcp::endpoint any(boost::asio::ip::make_address("127.0.0.1"), 0);
  auto server = HttpServer::listen(loop, any, {}, [&](const HttpQuestion& question) {
    posted = question.body;
    HttpReply reply;
    reply.later = [&](HttpReply::Give give) { waiting.push_back(std::move(give)); };
    return reply;
  });
  ASSERT_TRUE(server.ok());
  tcp::socket socket(loop);
  socket.connect(tcp::endpoint(any.address(), static_cast<unsigned short>((*server)->port())));
  const std::string request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody";
  const auto run_until = [&](const auto& condition) {
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      loop.restart();
      loop.run_one_for(100ms);
    }
    return condition();
  };
  boost::asio::write(socket, boost::asio::buffer(request));
  ASSERT_TRUE(run_until([&] { return waiting.size() == 1; }));
  EXPECT_EQ(posted, "body");
  waiting[0]({.status = 418, .body = "late\n"});
  ASSERT_TRUE(run_until([&] { return socket.available() > 0; }));
  std::string read;
  boost::asio::read_until(socket, boost::asio::dynamic_buffer(read), "late\n");
  EXPECT_THAT(read, HasSubstr("HTTP/1.1 418"));
  boost::asio::write(socket, boost::asio::buffer(request));
  ASSERT_TRUE(run_until([&] { return waiting.size() == 2; })) << "the connection goes on";
  (*server)->stop();
  waiting[1]({.body = "too late\n"});
}

TEST(HttpServer, a_question_has_its_headers_in_lower_case_and_each_value) {
  Site site;
  auto socket = site.connect(kRequest);
  ASSERT_TRUE(site.run_until([&] { return site.source.waiting != nullptr; }));
  EXPECT_EQ(site.asked.method, "GET");
  EXPECT_EQ(site.asked.target, "/log");
  EXPECT_THAT(site.asked.values_of("x-twice"), ElementsAre("a", "b"));
  EXPECT_THAT(site.asked.values_of("cookie"), ElementsAre());
}

}  // namespace
}  // namespace tj
