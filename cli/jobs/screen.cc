#include "cli/jobs/screen.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <sstream>
#include <string_view>

#include "cli/jobs/table.h"
#include "contract/launch_env.h"

namespace tj {
namespace {

// ECMA-48; the first two are the "synchronized output" that terminals draw as one picture.
constexpr const char* kBeginFrame = "\x1b[?2026h";
constexpr const char* kEndFrame = "\x1b[?2026l";
constexpr const char* kEndOfLine = "\x1b[K\n";
constexpr const char* kClearBelow = "\x1b[J";

constexpr TerminalSize kUnknownSize{.columns = 80, .rows = 24};

TerminalSize size_of(int fd) {
  const TerminalSize size = terminal_size(fd);
  return size.columns > 0 && size.rows > 0 ? size : kUnknownSize;
}

void write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Frame frame_of(const std::string& text, std::size_t lines_before, TerminalSize size) {
  Frame frame{.bytes = kBeginFrame};
  if (lines_before > 0) frame.bytes += "\x1b[" + std::to_string(lines_before) + "F";
  std::istringstream lines(text);
  const auto lines_max = static_cast<std::size_t>(std::max(size.rows, 2) - 1);
  for (std::string line; frame.line_count < lines_max && std::getline(lines, line);) {
    frame.bytes += cut_line(line, static_cast<std::size_t>(size.columns)) + kEndOfLine;
    ++frame.line_count;
  }
  frame.bytes += std::string(kClearBelow) + kEndFrame;
  return frame;
}

bool Screen::is_live() const {
  const std::string terminal = process_env("TERM").value_or("");
  return isatty(fd_) == 1 && !terminal.empty() && terminal != "dumb";
}

void Screen::draw(const std::string& text) {
  const Frame frame = frame_of(text, line_count_, size_of(fd_));
  write_whole(fd_, frame.bytes);
  line_count_ = frame.line_count;
}

void pause(std::chrono::milliseconds time) {
  boost::asio::io_context loop;
  boost::asio::steady_timer timer(loop, time);
  timer.async_wait([](auto) {});
  loop.run();
}

}  // namespace tj
