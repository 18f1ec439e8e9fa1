// Watches against servers that fail: lines arrive whole, and a stream that dies says so.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/kube/rest_fixture.h"

namespace tj {
namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using testing::SizeIs;

class RestWatch : public RestFixture {
 protected:
  void watch(seconds timeout = seconds(30)) {
    stream_ = api_->watch({.resource = Resource::pods, .resource_version = "7", .timeout = timeout},
                          log_.handler());
  }
  bool ended() {
    return loop_.run_until([&] { return log_.end.has_value(); });
  }
  std::string end_text() {
    if (!ended()) return "no end";
    return log_.end->ok() ? "in order"
                          : std::string(to_string(log_.end->error().code)) + ": " +
                                describe(log_.end->error());
  }

  WatchLog log_;
  std::unique_ptr<WatchStream> stream_;
};

TEST_P(RestWatch, lines_come_whole_however_they_are_cut) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("{\"a\""), chunk(":1}\n{\"b\":2}\n\n{"),
                            chunk("\"c\":3}\r\n"), chunk("")},
                 .between = milliseconds(2)};
  });
  connect();
  watch();
  EXPECT_EQ(end_text(), "in order");
  EXPECT_THAT(log_.lines, ElementsAre("{\"a\":1}", "{\"b\":2}", "{\"c\":3}"));
}

TEST_P(RestWatch, many_lines_keep_their_order) {
  serve([](const std::string&) {
    Reply answer{.pieces = {chunked_head()}};
    for (int i = 0; i < 200; ++i) {
      std::string lines;
      for (int j = 0; j < 50; ++j) lines += std::to_string(i * 50 + j) + "\n";
      answer.pieces.push_back(chunk(lines));
    }
    answer.pieces.push_back(chunk(""));
    return answer;
  });
  connect();
  watch();
  EXPECT_EQ(end_text(), "in order");
  ASSERT_THAT(log_.lines, SizeIs(10'000));
  for (std::size_t i = 0; i < log_.lines.size(); ++i) ASSERT_EQ(log_.lines[i], std::to_string(i));
}

TEST_P(RestWatch, a_stream_that_is_cut_is_an_error) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("{\"a\":1}\n")}, .after = After::close};
  });
  connect();
  watch();
  EXPECT_THAT(end_text(), AllOf(HasSubstr("unavailable: "), HasSubstr(server_->url()),
                                HasSubstr("the connection broke")));
}

TEST_P(RestWatch, a_stream_that_ends_within_a_line_is_an_error) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("{\"a\":1}\n{\"b\""), chunk("")}};
  });
  connect();
  watch();
  EXPECT_THAT(end_text(), HasSubstr("the stream ended within an event"));
  EXPECT_THAT(log_.lines, ElementsAre("{\"a\":1}"));
}

TEST_P(RestWatch, an_http_status_ends_it_with_its_code) {
  for (const auto& [status, text] :
       {std::pair(410, "gone: "), std::pair(403, "forbidden: "), std::pair(500, "unavailable: ")}) {
    serve(
        [code = status](const std::string&) { return reply(code, status_body(code, "because")); });
    connect();
    log_ = {};
    watch();
    EXPECT_THAT(end_text(), AllOf(HasSubstr(text), HasSubstr("because")));
  }
}

TEST_P(RestWatch, a_silent_stream_is_dead) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("{\"a\":1}\n")}, .after = After::hang};
  });
  // The shortest bound within which this machine brings the line itself.
  for (milliseconds idle(200); log_.lines.empty() && idle < seconds(20); idle *= 4) {
    connect({.watch_idle_max = idle});
    log_ = {};
    watch();
    EXPECT_THAT(end_text(), AllOf(HasSubstr("timeout: "),
                                  HasSubstr("silent for " + std::to_string(idle.count()) + " ms")));
  }
  EXPECT_THAT(log_.lines, SizeIs(1));
}

TEST_P(RestWatch, a_server_that_never_answers_is_dead_too) {
  serve([](const std::string&) { return Reply{.pieces = {}, .after = After::hang}; });
  connect({.watch_idle_max = milliseconds(200)});
  watch();
  EXPECT_THAT(end_text(), HasSubstr("silent for 200 ms"));
}

TEST_P(RestWatch, bytes_keep_a_stream_alive) {
  serve([](const std::string&) {
    Reply answer{.pieces = {chunked_head()}, .between = milliseconds(150)};
    for (int i = 0; i < 20; ++i) answer.pieces.push_back(chunk("{}\n"));
    answer.pieces.push_back(chunk(""));
    return answer;
  });
  connect({.watch_idle_max = seconds(2)});  // the server may be late on a busy machine
  watch();
  EXPECT_EQ(end_text(), "in order");
  EXPECT_THAT(log_.lines, SizeIs(20));
}

TEST_P(RestWatch, a_line_beyond_the_bound_ends_it) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk(std::string(3'000, 'x'))}, .after = After::hang};
  });
  connect({.line_bytes_max = 2'000});
  watch();
  EXPECT_THAT(end_text(), HasSubstr("an event is longer than 2000 bytes"));
}

TEST_P(RestWatch, a_refused_connection_ends_it) {
  connect(config_for("https://127.0.0.1:1"));
  watch();
  EXPECT_THAT(end_text(), AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("connection refused")));
}

TEST_P(RestWatch, a_rotated_token_is_used_after_a_401) {
  const std::string file = testing::TempDir() + "tj_watch_token_" + std::to_string(getpid());
  const auto write = [&](const std::string& token) { std::ofstream(file) << token; };
  write("old");
  serve([&](const std::string& request) {
    const bool fresh = request.find("Bearer new\r\n") != std::string::npos;
    if (fresh) return Reply{.pieces = {chunked_head(), chunk("{}\n"), chunk("")}};
    write("new");
    return reply(401, status_body(401, "Unauthorized"));
  });
  KubeConfig config = config_for(server_->url());
  config.token_file = file;
  connect(config);
  watch();
  EXPECT_EQ(end_text(), "in order");
  EXPECT_THAT(log_.lines, SizeIs(1));
  std::remove(file.c_str());
}

TEST_P(RestWatch, no_callback_starts_after_its_destruction) {
  serve([](const std::string&) {
    Reply answer{.pieces = {chunked_head()}, .between = milliseconds(1), .after = After::hang};
    for (int i = 0; i < 2'000; ++i) answer.pieces.push_back(chunk("{}\n{}\n{}\n"));
    return answer;
  });
  connect();
  watch();
  ASSERT_TRUE(loop_.run_until([&] { return log_.lines.size() >= 3; }));
  stream_.reset();
  const auto seen = log_.lines.size();
  EXPECT_FALSE(
      loop_.run_until([&] { return log_.lines.size() > seen || log_.end; }, milliseconds(100)));
}

TEST_P(RestWatch, a_stream_may_be_destroyed_by_its_own_line) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("1\n2\n3\n")}, .after = After::hang};
  });
  connect();
  std::vector<std::string> lines;
  bool end_seen = false;
  stream_ = api_->watch({.resource = Resource::pods, .resource_version = "7"},
                        {.on_line =
                             [&](std::string line) {
                               lines.push_back(std::move(line));
                               stream_.reset();
                             },
                         .on_end = [&](Result<void>) { end_seen = true; }});
  ASSERT_TRUE(loop_.run_until([&] { return !lines.empty(); }));
  EXPECT_FALSE(loop_.run_until([&] { return lines.size() > 1 || end_seen; }, milliseconds(100)));
}

TEST_P(RestWatch, a_stream_may_outlive_its_client) {
  serve([](const std::string&) {
    return Reply{.pieces = {chunked_head(), chunk("1\n")}, .after = After::hang};
  });
  connect();
  watch();
  ASSERT_TRUE(loop_.run_until([&] { return !log_.lines.empty(); }));
  api_.reset();
  EXPECT_FALSE(loop_.run_until([&] { return log_.end.has_value(); }, milliseconds(100)));
  stream_.reset();
}

INSTANTIATE_TEST_SUITE_P(Clients, RestWatch,
                         testing::Values(Client::of_operator, Client::of_person), client_name);

}  // namespace
}  // namespace tj
