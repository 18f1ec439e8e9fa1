// Logs as server-sent events: of a file that grows, and of a pod, whose server the test plays.
#include "cli/ui/log_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cli/ui/loop_until.h"
#include "tests/temporary_folder.h"

namespace tj::ui {
namespace {
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

const LogQuestion kQuestion{.job = {"default", "mnist"}, .rank = 1, .attempt = 0, .last_id = ""};

/// Reads a stream as a client would, and keeps all that came.
struct Reader {
  boost::asio::io_context& loop;
  std::unique_ptr<HttpStream> stream;
  std::string text;
  bool has_ended = false;

  void ask() {
    stream->next([this](std::optional<std::string> chunk) {
      has_ended = !chunk;
      text += chunk.value_or("");
      waits = false;
    });
  }
  bool reads(const std::string& wanted) {
    const auto is_there = [&] { return text.find(wanted) != std::string::npos; };
    loop_until(loop, [&] {
      if (!is_there() && !has_ended && !std::exchange(waits, true)) ask();
      return is_there() || has_ended;
    });
    return is_there();
  }
  bool waits = false;
};

class FileLogs : public testing::Test {
 protected:
  void append(const std::string& text) {
    std::ofstream(file(), std::ios::binary | std::ios::app) << text;
  }
  fs::path file() const { return folder_.path() / "worker.log"; }
  Reader follow(const LogQuestion& question = kQuestion) {
    return {loop_, follow_file(loop_, file(), question, [this] { return ended_; }), "", false};
  }

  boost::asio::io_context loop_;
  const TemporaryFolder folder_;
  bool ended_ = false;
};

TEST_F(FileLogs, one_that_comes_late_grows_and_ends) {
  Reader reader = follow();
  reader.ask();
  reader.waits = true;
  append("one\ntwo\nthr");
  ASSERT_TRUE(reader.reads(R"("lines":["one","two"])"));
  EXPECT_THAT(reader.text, HasSubstr("id: 8\n")) << "behind the last whole line";
  append("ee\n");
  ASSERT_TRUE(reader.reads(R"("lines":["three"])"));
  append("no newline");
  ended_ = true;
  ASSERT_TRUE(reader.reads("event: end"));
  EXPECT_THAT(reader.text, HasSubstr(R"("lines":["no newline"])"));
  (void)reader.reads("anything else");
  EXPECT_TRUE(reader.has_ended);
}

TEST_F(FileLogs, a_reader_who_comes_again_goes_on_where_he_was) {
  append("one\ntwo\nthree\n");
  LogQuestion question = kQuestion;
  question.last_id = "8";
  Reader reader = follow(question);
  ASSERT_TRUE(reader.reads("three"));
  EXPECT_THAT(reader.text, Not(HasSubstr("two")));
}

TEST_F(FileLogs, of_a_long_one_the_end_is_shown_from_a_whole_line_on) {
  for (int i = 0; i < 30'000; ++i) append("line " + std::to_string(i) + " .\n");
  ended_ = true;
  Reader reader = follow();
  ASSERT_TRUE(reader.reads("event: end"));
  EXPECT_THAT(reader.text, HasSubstr("line 29999 ."));
  EXPECT_THAT(reader.text, Not(HasSubstr("\"line 100 .\"")));
  EXPECT_LT(reader.text.size(), 2 * kLogTailBytes);
  EXPECT_THAT(reader.text.substr(0, 60), HasSubstr(R"({"lines":["line )"));
}

TEST_F(FileLogs, any_bytes_become_text_and_long_lines_are_cut) {
  append("bad \xff byte\n" + std::string(100'000, 'x') + "\nlast\n");
  Reader reader = follow();
  ASSERT_TRUE(reader.reads("last"));
  EXPECT_THAT(reader.text, HasSubstr("bad \xef\xbf\xbd byte"));
  EXPECT_THAT(reader.text, Not(HasSubstr(std::string(kLogLineBytesMax + 1, 'x'))));
}

TEST_F(FileLogs, one_whose_reader_goes_as_it_is_about_to_look_again_looks_no_more) {
  bool is_there = true;
  auto stream = follow_file(loop_, file(), kQuestion, [&is_there] {
    EXPECT_TRUE(is_there);
    return false;
  });
  stream->next([](std::optional<std::string>) {});
  boost::asio::steady_timer reader_goes(loop_, 1ms);  // due before the next look
  reader_goes.async_wait([&](auto) {
    stream.reset();
    is_there = false;
  });
  const auto both_are_due = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < both_are_due) std::this_thread::yield();
  loop_.poll();
  EXPECT_FALSE(is_there);
}

/// Plays an API server's logs: the test says what lines come, and which pod has the name.
class LogApi final : public KubeApi {
 public:
  class Stream final : public WatchStream {};
  void send(Request request, Done done) override {
    questions.push_back(std::move(request));
    answers.push_back(std::move(done));
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    requests.push_back(std::move(request));
    handlers.push_back(std::move(handler));
    return std::make_unique<Stream>();
  }
  std::vector<Request> questions;
  std::vector<Done> answers;
  std::vector<WatchRequest> requests;
  std::vector<WatchHandler> handlers;
};

constexpr const char* kDay = "2026-01-01T00:00:";

struct PodWorld {
  explicit PodWorld(const std::string& last_id = "", const std::string& uid = "")
      : reader{loop, open(last_id, uid), "", false} {}
  std::unique_ptr<HttpStream> open(const std::string& last_id, const std::string& uid) {
    LogQuestion question = kQuestion;
    question.last_id = last_id;
    return follow_pod(loop, api, question,
                      {.container = "main", .uid = uid, .has_ended = [this] { return ended; }});
  }
  /// A line of the stream that is open: "01.5", "text".
  void say(const std::string& second, const std::string& text) {
    api.handlers.back().on_line(kDay + second + "Z " + text);
  }
  void end_stream(Result<void> end = {}) { api.handlers.back().on_end(std::move(end)); }
  bool opens(std::size_t streams) {
    return loop_until(loop, [&] { return api.requests.size() == streams; });
  }
  /// The worker has ended. Its streams end, until one is opened after that was seen: it asks for
  /// what is there, and doesn't follow.
  bool opens_the_last(const Result<void>& end = {}) {
    ended = true;
    for (int tries = 0; tries < 4 && api.requests.back().log->follow; ++tries) {
      end_stream(end);
      if (!opens(api.requests.size() + 1)) return false;
    }
    return !api.requests.back().log->follow;
  }
  /// Of the last event.
  std::string id() const {
    const auto begin = reader.text.rfind("id: ") + 4;
    return reader.text.substr(begin, reader.text.find('\n', begin) - begin);
  }

  boost::asio::io_context loop;
  LogApi api;
  bool ended = false;
  Reader reader;
};

TEST(PodLogs, are_asked_for_by_pod_and_container_with_their_times) {
  PodWorld world;
  ASSERT_EQ(world.api.requests.size(), 1U);
  const WatchRequest& request = world.api.requests[0];
  EXPECT_EQ(request.ns, "default");
  EXPECT_EQ(request.name, "mnist-worker-1");
  ASSERT_TRUE(request.log);
  EXPECT_EQ(request.log->container, "main");
  EXPECT_TRUE(request.log->follow && request.log->timestamps);
  EXPECT_EQ(request.log->tail_lines, kLogTailLines);
}

TEST(PodLogs, that_break_go_on_without_a_line_twice_or_lost) {
  PodWorld world;
  world.say("01", "one");
  world.say("02.000000001", "two");
  ASSERT_TRUE(world.reader.reads(R"("lines":["one","two"])"));
  world.end_stream(Error{Code::unavailable, "reset", "", {}});
  ASSERT_TRUE(world.opens(2));
  EXPECT_EQ(world.api.requests[1].log->since_time, "2026-01-01T00:00:01Z");
  EXPECT_FALSE(world.api.requests[1].log->tail_lines);
  world.say("01", "one");
  world.say("02.000000001", "two");
  world.say("02.000000001", "two");  // of the same nanosecond, and a line of its own
  world.say("02", "written by another thread");
  ASSERT_TRUE(world.reader.reads(R"("lines":["two","written by another thread"])"));
  ASSERT_TRUE(world.opens_the_last()) << "an end alone may be a proxy's";
  world.end_stream();
  EXPECT_TRUE(world.reader.reads("event: end"));
}

TEST(PodLogs, whose_reader_comes_again_go_on_behind_what_was_given) {
  PodWorld first;
  first.say("01.5", "of the tail");
  first.say("03.1", "one");
  first.say("03.1", "two");
  ASSERT_TRUE(first.reader.reads("two"));
  PodWorld second(first.id());
  ASSERT_TRUE(second.api.requests[0].log);
  EXPECT_EQ(second.api.requests[0].log->since_time, "2026-01-01T00:00:02Z");
  EXPECT_FALSE(second.api.requests[0].log->tail_lines);
  for (const char* text : {"one", "two", "three"}) second.say("03.1", text);
  second.say("03", "late");
  ASSERT_TRUE(second.reader.reads(R"("lines":["three","late"])"));
  PodWorld third(second.id());
  for (const char* text : {"one", "two", "three"}) third.say("03.1", text);
  third.say("03", "late");
  third.say("03.2", "four");
  EXPECT_TRUE(third.reader.reads(R"("lines":["four"])"));
  EXPECT_LE(third.id().size(), 60U) << "as long as a Last-Event-ID may be";
}

TEST(PodLogs, whose_reader_went_with_lines_in_the_queue_go_on_with_those) {
  PodWorld first;
  for (int i = 0; i < 600; ++i) first.say("01", "line " + std::to_string(i) + " .");
  ASSERT_TRUE(first.reader.reads("line 499 ."));  // as many as go in one event
  PodWorld second(first.id());
  for (int i = 0; i < 600; ++i) second.say("01", "line " + std::to_string(i) + " .");
  ASSERT_TRUE(second.reader.reads("line 599 ."));
  EXPECT_THAT(second.reader.text, HasSubstr(R"({"lines":["line 500 .")"));
}

TEST(PodLogs, begin_at_the_tail_for_a_reader_who_says_something_strange) {
  for (const char* id : {"x", "1", "1/2", "1/2/", "1/2/3", "-1/0/-1", "9/9/9/9", "/", "3/1/1 ",
                         "99999999999999999999/1/1"}) {
    const PodWorld world(id);
    EXPECT_TRUE(world.api.requests[0].log->tail_lines) << id;
  }
}

TEST(PodLogs, are_not_taken_from_another_pod_of_the_name) {
  PodWorld world("", "uid-of-attempt-0");
  world.say("01", "of attempt 1");
  ASSERT_EQ(world.api.answers.size(), 1U);
  EXPECT_EQ(world.api.questions[0].name, "mnist-worker-1");
  world.api.answers[0](std::string(R"({"metadata":{"uid":"uid-of-attempt-1"}})"));
  EXPECT_TRUE(world.reader.reads("this worker has no log"));
  EXPECT_THAT(world.reader.text, Not(HasSubstr("of attempt 1")));
}

TEST(PodLogs, without_the_right_say_so_and_end) {
  PodWorld world;
  world.end_stream(Error{Code::forbidden, "pods/log is forbidden", "", {}});
  EXPECT_TRUE(world.reader.reads("pods/log is forbidden"));
  EXPECT_THAT(world.reader.text, HasSubstr("event: end"));
}

TEST(PodLogs, of_a_worker_that_never_began_end_with_its_job) {
  PodWorld world;
  const Error waiting{Code::invalid, R"(container "main" is waiting to start)", "", {}};
  world.end_stream(waiting);
  ASSERT_TRUE(world.opens(2));
  ASSERT_TRUE(world.opens_the_last(waiting));
  world.end_stream(waiting);
  EXPECT_TRUE(world.reader.reads("is waiting to start"));
  EXPECT_THAT(world.reader.text, HasSubstr("event: end"));
}

TEST(PodLogs, that_come_too_fast_lose_lines_and_say_how_many) {
  PodWorld world;
  char second[64];
  for (std::size_t i = 0; i < kLogQueueLinesMax + 7; ++i) {
    std::snprintf(second, sizeof second, "00.%09zu", i + 1);
    world.say(second, "line " + std::to_string(i));
  }
  EXPECT_TRUE(world.reader.reads(R"("line 5006"])"));
  EXPECT_THAT(world.reader.text, HasSubstr(R"("lost":7)"));
  EXPECT_THAT(world.reader.text, Not(HasSubstr("\"line 6\"")));
  EXPECT_THAT(world.reader.text, HasSubstr("\"line 7\""));
}

TEST(PodLogs, of_endless_lines_wait_in_bounded_memory) {
  PodWorld world;
  const std::string endless(25 * kLogLineBytesMax, 'x');
  char second[64];
  for (int i = 0; i < 300; ++i) {
    std::snprintf(second, sizeof second, "00.%09d", i + 1);
    world.say(second, endless);
  }
  const std::size_t kept = kLogQueueBytesMax / (kLogLineBytesMax + 1);
  EXPECT_TRUE(world.reader.reads("\"lost\":" + std::to_string(300 - kept)));
  EXPECT_THAT(world.reader.text, HasSubstr(std::string(kLogLineBytesMax, 'x') + " …"));
  EXPECT_LT(world.reader.text.size(), 2 * kLogQueueBytesMax);
}

}  // namespace
}  // namespace tj::ui
