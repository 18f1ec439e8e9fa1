// Reading /progress over real sockets on the loopback, client and server on one io_context. The
// server is anybody's program: each test gives it another vice.
#include "operator/loop/http_progress_source.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <vector>

namespace tj {
namespace {
using namespace std::chrono_literals;
using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kDeadline{20};
constexpr std::chrono::milliseconds kShort{300};  // where the bound itself is what is looked at
const std::string kDocument = R"({"attempt": 2, "step": 120, "steps": 1000, "loss": 3.5})";

std::string answer_with(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

/// Reads each request and then does what it was made for.
class Server {
 public:
  using Serve = std::function<void(std::shared_ptr<tcp::socket>)>;
  Server(boost::asio::io_context& loop, Serve serve)
      : loop_(loop),
        acceptor_(loop, {boost::asio::ip::make_address("127.0.0.1"), 0}),
        serve_(std::move(serve)) {
    accept();
  }
  ProgressTarget target() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  const std::string& request() const { return request_; }
  int served() const { return served_; }

 private:
  void accept() {
    auto socket = std::make_shared<tcp::socket>(loop_);
    acceptor_.async_accept(*socket, [this, socket](error_code error) {
      if (error) return;
      auto text = std::make_shared<std::string>();
      boost::asio::async_read_until(*socket, boost::asio::dynamic_buffer(*text), "\r\n\r\n",
                                    [this, socket, text](error_code failed, std::size_t) {
                                      if (failed) return;
                                      request_ = *text;
                                      ++served_;
                                      serve_(socket);
                                    });
      accept();
    });
  }

  boost::asio::io_context& loop_;
  tcp::acceptor acceptor_;
  Serve serve_;
  std::string request_;
  int served_ = 0;
};

struct Site {
  boost::asio::io_context loop;

  PollAnswer fetch(const ProgressTarget& target,
                   std::chrono::milliseconds time_max = HttpProgressSource::kExchangeMax) {
    HttpProgressSource source(loop, time_max);
    std::optional<PollAnswer> answer;
    source.fetch(target, [&](PollAnswer given) {
      EXPECT_FALSE(answer) << "answered twice";
      answer = std::move(given);
    });
    EXPECT_FALSE(answer) << "answered from inside the call";
    run_until([&] { return answer.has_value(); });
    EXPECT_TRUE(answer);
    return answer.value_or(PollAnswer{});
  }
  void run_until(const std::function<bool()>& reached) {
    loop.restart();
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (!reached() && std::chrono::steady_clock::now() < end) loop.run_one_for(100ms);
  }
  PollAnswer fetch_from(const std::string& text) {
    Server server(loop, [text](const std::shared_ptr<tcp::socket>& socket) {
      auto kept = std::make_shared<std::string>(text);
      boost::asio::async_write(*socket, boost::asio::buffer(*kept),
                               [socket, kept](error_code, std::size_t) {});
    });
    return fetch(server.target());
  }
};

TEST(HttpProgressSource, reads_the_document) {
  Site site;
  Server server(site.loop, [](const std::shared_ptr<tcp::socket>& socket) {
    boost::asio::write(*socket, boost::asio::buffer(answer_with(kDocument)));
  });
  const PollAnswer answer = site.fetch(server.target());
  EXPECT_EQ(answer.result, PollResult::read);
  EXPECT_EQ(answer.document.step, 120);
  EXPECT_EQ(answer.document.steps, 1000);
  EXPECT_EQ(server.request().substr(0, 24), "GET /progress HTTP/1.1\r\n");
}

TEST(HttpProgressSource, reads_what_comes_in_chunks_or_without_a_length) {
  Site site;
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                              std::string("a\r\n{\"step\": 1\r\n1\r\n}\r\n0\r\n\r\n");
  EXPECT_EQ(site.fetch_from(chunked).document.step, 1);
  EXPECT_EQ(site.fetch_from("HTTP/1.0 200 OK\r\n\r\n{\"step\": 7}").document.step, 7);
}

TEST(HttpProgressSource, tells_a_port_without_a_listener) {
  Site site;
  tcp::acceptor gone(site.loop, {boost::asio::ip::make_address("127.0.0.1"), 0});
  const ProgressTarget target{"127.0.0.1", gone.local_endpoint().port()};
  gone.close();
  EXPECT_EQ(site.fetch(target).result, PollResult::refused);
}

TEST(HttpProgressSource, takes_an_address_that_is_none_as_unreachable) {
  Site site;
  for (const char* ip : {"", "rank-0.example", "300.1.2.3"}) {
    EXPECT_EQ(site.fetch({ip, 29600}).result, PollResult::unreachable) << ip;
  }
}

/// As of a process that has been stopped for long: the kernel takes no connection more.
TEST(HttpProgressSource, tells_a_full_backlog_as_unreachable) {
  Site site;
  tcp::acceptor stopped(site.loop);
  stopped.open(tcp::v4());
  stopped.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  stopped.listen(0);
  std::vector<tcp::socket> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(site.loop).async_connect(stopped.local_endpoint(), [](error_code) {});
  }
  site.loop.poll();
  const ProgressTarget target{"127.0.0.1", stopped.local_endpoint().port()};
  EXPECT_EQ(site.fetch(target, kShort).result, PollResult::unreachable);
}

TEST(HttpProgressSource, gives_up_on_who_is_silent) {
  Site site;
  Server server(site.loop, [](const std::shared_ptr<tcp::socket>& socket) {
    auto until_closed = std::make_shared<char>();
    boost::asio::async_read(*socket, boost::asio::buffer(until_closed.get(), 1),
                            [socket, until_closed](error_code, std::size_t) {});
  });
  EXPECT_EQ(site.fetch(server.target(), kShort).result, PollResult::no_answer);
}

/// Each byte in good time, and never an end: the bound is on the whole.
TEST(HttpProgressSource, gives_up_on_who_drips) {
  struct Drip : std::enable_shared_from_this<Drip> {
    Drip(boost::asio::io_context& loop, std::shared_ptr<tcp::socket> to)
        : timer(loop), socket(std::move(to)) {}
    void next() {
      timer.expires_after(10ms);
      timer.async_wait([self = shared_from_this()](error_code) {
        error_code failed;
        boost::asio::write(*self->socket, boost::asio::buffer("x", 1), failed);
        if (!failed) self->next();
      });
    }
    boost::asio::steady_timer timer;
    std::shared_ptr<tcp::socket> socket;
  };
  Site site;
  Server server(site.loop, [&](const std::shared_ptr<tcp::socket>& socket) {
    boost::asio::write(
        *socket,
        boost::asio::buffer(std::string("HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n")));
    std::make_shared<Drip>(site.loop, socket)->next();
  });
  EXPECT_EQ(site.fetch(server.target(), kShort).result, PollResult::no_answer);
}

TEST(HttpProgressSource, takes_what_is_cut_as_no_answer) {
  Site site;
  EXPECT_EQ(site.fetch_from("").result, PollResult::no_answer);
  EXPECT_EQ(site.fetch_from("HTTP/1.1 200 O").result, PollResult::no_answer);
  std::string cut = answer_with(kDocument);
  cut.resize(cut.size() - 10);
  EXPECT_EQ(site.fetch_from(cut).result, PollResult::no_answer);
}

TEST(HttpProgressSource, refuses_what_is_no_document) {
  Site site;
  const std::vector<std::string> bad = {
      "\x16\x03\x01 this is TLS\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n\r\n",
      answer_with(kDocument, "404 Not Found"),
      answer_with(kDocument, "500 Internal Server Error"),
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
      answer_with(""),
      answer_with("<html></html>"),
      answer_with("[]"),
      answer_with(R"({"steps": 3})"),
      answer_with(R"({"step": "three"})"),
      answer_with(R"({"step": 1, "loss": 1e999})"),
      answer_with("{\"step\": 1, \"phase\": \"\xff\xfe\"}"),
      answer_with("{\"step\": " + std::string(8'000, '[') + std::string(8'000, ']') + "}"),
  };
  for (const std::string& text : bad) {
    EXPECT_EQ(site.fetch_from(text).result, PollResult::invalid) << text.substr(0, 80);
  }
}

TEST(HttpProgressSource, reads_no_more_than_a_document_can_have) {
  Site site;
  const std::string most(kProgressBytesMax - 12, ' ');
  EXPECT_EQ(site.fetch_from(answer_with("{\"step\": 12}" + most)).document.step, 12);
  EXPECT_EQ(site.fetch_from(answer_with("{\"step\": 12} " + most)).result, PollResult::invalid);
  EXPECT_EQ(site.fetch_from("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n").result,
            PollResult::invalid);
  // Without a length, and without an end.
  const std::string endless(1'000'000, 'x');
  EXPECT_EQ(site.fetch_from("HTTP/1.1 200 OK\r\n\r\n" + endless).result, PollResult::invalid);
  EXPECT_EQ(site.fetch_from("HTTP/1.1 200 OK\r\nX: " + endless).result, PollResult::invalid);
}

TEST(HttpProgressSource, asks_a_thousand_and_mixes_none_up) {
  Site site;
  Server server(site.loop, [](const std::shared_ptr<tcp::socket>& socket) {
    auto text = std::make_shared<std::string>(answer_with(kDocument));
    boost::asio::async_write(*socket, boost::asio::buffer(*text),
                             [socket, text](error_code, std::size_t) {});
  });
  HttpProgressSource source(site.loop, kDeadline);
  int read = 0, left = 1'000;
  std::function<void()> ask = [&] {
    source.fetch(server.target(), [&](const PollAnswer& answer) {
      if (answer.result == PollResult::read) ++read;
      if (--left >= 32) ask();
    });
  };
  for (int i = 0; i < 32; ++i) ask();
  site.run_until([&] { return left == 0; });
  EXPECT_EQ(read, 1'000);
  EXPECT_EQ(server.served(), 1'000);
}

TEST(HttpProgressSource, may_be_destroyed_with_its_loop_while_it_waits) {
  bool answered = false;
  {
    std::vector<std::shared_ptr<tcp::socket>> held;
    boost::asio::io_context loop;
    Server server(loop, [&](const auto& socket) { held.push_back(socket); });
    HttpProgressSource source(loop);
    source.fetch(server.target(), [&](const PollAnswer&) { answered = true; });
    const auto end = std::chrono::steady_clock::now() + kDeadline;
    while (held.empty() && std::chrono::steady_clock::now() < end) loop.run_one_for(100ms);
    EXPECT_EQ(held.size(), 1U);
    held.clear();
  }
  EXPECT_FALSE(answered);
}

}  // namespace
}  // namespace tj
