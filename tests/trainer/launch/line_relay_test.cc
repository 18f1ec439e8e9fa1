#include "trainer/launch/line_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

namespace tj::trainer {
namespace {

TEST(LineRelay, whole_lines_are_prefixed_and_the_rest_stays) {
  std::string text = "one\n\ntwo\nthr";
  EXPECT_EQ(take_lines(text, "[rank 0] "), "[rank 0] one\n[rank 0] \n[rank 0] two\n");
  EXPECT_EQ(text, "thr");
}

TEST(LineRelay, a_progress_bar_is_shown_as_it_moves) {
  std::string text = "\r 1%\r 2%\r";
  EXPECT_EQ(take_lines(text, "> "), "> \r>  1%\r");
  EXPECT_EQ(text, " 2%\r");
  text += "\n";
  EXPECT_EQ(take_lines(text, "> "), ">  2%\r\n");
}

TEST(LineRelay, a_line_without_end_is_broken_at_the_limit) {
  std::string text(kLineBytesMax, 'x');
  EXPECT_EQ(take_lines(text, "> "), "> " + std::string(kLineBytesMax, 'x') + "\n");
  EXPECT_TRUE(text.empty());
}

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end = UniqueFd(ends[0]);
    write_end = UniqueFd(ends[1]);
  }
  UniqueFd read_end;
  UniqueFd write_end;
};

void pump(LineRelay& relay) {
  std::vector<pollfd> polls;
  relay.add_polls(polls);
  ASSERT_GE(::poll(polls.data(), polls.size(), 0), 0);
  relay.handle(polls);
}

std::string read_some(const Pipe& pipe) {
  std::array<char, 65536> buffer;
  const ssize_t bytes = ::read(pipe.read_end.value(), buffer.data(), buffer.size());
  return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(0, bytes))};
}

void put(const Pipe& pipe, std::string_view text) {
  ASSERT_EQ(::write(pipe.write_end.value(), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
}

TEST(LineRelay, lines_of_two_sources_do_not_mix) {
  Pipe first;
  Pipe second;
  Pipe target;
  LineRelay relay(target.write_end.value());
  relay.add(std::move(first.read_end), "[rank 0] ");
  relay.add(std::move(second.read_end), "[rank 1] ");
  put(first, "half ");
  put(second, "whole\n");
  pump(relay);
  put(first, "done\nopen end");
  first.write_end.reset();
  second.write_end.reset();
  for (int round = 0; round < 8 && !relay.done(); ++round) pump(relay);
  EXPECT_TRUE(relay.done());
  EXPECT_EQ(read_some(target), "[rank 1] whole\n[rank 0] half done\n[rank 0] open end\n");
}

TEST(LineRelay, who_listens_too_gets_the_lines_of_the_target) {
  Pipe source;
  Pipe target;
  std::string heard;
  const LineSink listener = [&](std::string_view lines) { heard += lines; };
  LineRelay relay(target.write_end.value(), &listener);
  relay.add(std::move(source.read_end), "[rank 0] ");
  put(source, "one\ntw");
  pump(relay);
  EXPECT_EQ(heard, "[rank 0] one\n");
  put(source, "o");
  source.write_end.reset();
  for (int round = 0; round < 8 && !relay.done(); ++round) pump(relay);
  EXPECT_EQ(heard, "[rank 0] one\n[rank 0] two\n");
  EXPECT_EQ(read_some(target), heard);
}

TEST(LineRelay, a_full_target_holds_the_writers_back) {
  Pipe source;
  Pipe target;
  LineRelay relay(target.write_end.value());
  relay.add(std::move(source.read_end), "");
  ASSERT_EQ(::fcntl(source.write_end.value(), F_SETFL, O_NONBLOCK), 0);
  const std::string line = std::string(1023, 'x') + "\n";
  std::size_t accepted_bytes = 0;
  for (int round = 0; round < 4000; ++round) {
    if (::write(source.write_end.value(), line.data(), line.size()) > 0) {
      accepted_bytes += line.size();
    }
    pump(relay);
  }
  EXPECT_LE(accepted_bytes, kPendingBytesMax + 4 * kLineBytesMax);
  EXPECT_EQ(::write(source.write_end.value(), line.data(), line.size()), -1);
}

TEST(LineRelay, a_target_that_is_gone_closes_the_sources) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe source;
  Pipe target;
  LineRelay relay(target.write_end.value());
  relay.add(std::move(source.read_end), "");
  target.read_end.reset();
  put(source, "nobody reads this\n");
  for (int round = 0; round < 4 && !relay.done(); ++round) pump(relay);
  EXPECT_TRUE(relay.done());
  EXPECT_EQ(::write(source.write_end.value(), "x", 1), -1);
}

}  // namespace
}  // namespace tj::trainer
