#include "trainer/process/lines.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>

#include "contract/launch_env.h"
#include "contract/utf8.h"
#include "trainer/process/failed_writes.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
constexpr const char* kClearLine = "\r\033[K";
constexpr std::size_t kEarlyBytesMax = 64 * 1024;  // said before there is a file
constexpr int kColumnsDefault = 80;
/// Who speaks may stand still, because nobody reads; a watchdog's last words must not wait for it.
constexpr std::chrono::milliseconds kTurnMax{100};

struct Screen {
  std::timed_mutex mutex;  // guards the rest
  std::string bar;
  std::string early;  // lines for the file that isn't open yet
  UniqueFd log;
};

Screen& screen() {
  static auto* const instance = new Screen;  // threads may speak until the process ends
  return *instance;
}

/// False when the disk is full, or the reader gone and that wanted ignored: then there is nobody
/// left to tell.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) end_where_nobody_reads(errno);
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

std::string time_text() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto thousandths =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char date[32], text[48];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text, sizeof text, "%s.%03dZ ", date, static_cast<int>(thousandths));
  return text;
}

/// Each of its lines after the time.
std::string stamped(std::string_view text) {
  const std::string time = time_text();
  std::string lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    lines.append(time).append(text.substr(0, end)).append("\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void speak(int descriptor, const std::string& said) {
  const std::string line = with_invalid_utf8_replaced(said);
  auto& to = screen();
  const std::unique_lock lock(to.mutex, kTurnMax);
  const bool shares_line = lock.owns_lock() && !to.bar.empty();
  if (shares_line && descriptor != STDOUT_FILENO) (void)write_all(STDOUT_FILENO, kClearLine);
  const bool clears = shares_line && descriptor == STDOUT_FILENO;
  (void)write_all(descriptor, (clears ? kClearLine : "") + line + "\n" + (clears ? to.bar : ""));
  if (shares_line && !clears) (void)write_all(STDOUT_FILENO, to.bar);
  if (!lock.owns_lock()) return;
  if (to.log.open()) {
    (void)write_all(to.log.value(), stamped(line));
  } else if (to.early.size() < kEarlyBytesMax) {
    to.early += stamped(line);
  }
}

Error disk_error(const std::filesystem::path& file) {
  return {.code = Code::unavailable,
          .message = std::string("can't be written: ") + std::strerror(errno),
          .subject = file.string(),
          .retry_after = {}};
}

}  // namespace

void say(const std::string& line) { speak(STDOUT_FILENO, line); }
void say_error(const std::string& line) { speak(STDERR_FILENO, line); }

Result<void> log_lines_to(const std::filesystem::path& file, const std::string& heading) {
  std::error_code ignored;  // open() says it better
  std::filesystem::create_directories(file.parent_path(), ignored);
  UniqueFd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log.open()) return disk_error(file);
  auto& to = screen();
  const std::scoped_lock lock(to.mutex);
  if (!write_all(log.value(), stamped(heading) + to.early)) return disk_error(file);
  to.early.clear();
  to.log = std::move(log);
  return {};
}

Result<void> log_lines(std::string_view lines) {
  auto& to = screen();
  const std::unique_lock lock(to.mutex, kTurnMax);
  if (!lock.owns_lock() || !to.log.open() || write_all(to.log.value(), stamped(lines))) return {};
  return Error{.code = Code::unavailable,
               .message = std::string("can't be written: ") + std::strerror(errno),
               .subject = {},
               .retry_after = {}};
}

bool is_terminal() {
  return ::isatty(STDOUT_FILENO) == 1 && process_env("TERM").value_or("dumb") != "dumb";
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kColumnsDefault;
}

void draw_bar(const std::string& bar) {
  auto& to = screen();
  const std::scoped_lock lock(to.mutex);
  to.bar = bar;
  (void)write_all(STDOUT_FILENO, kClearLine + bar);
}

Result<void> append_line(const std::filesystem::path& file, const std::string& line) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (fd.open() && write_all(fd.value(), line + "\n")) return {};
  return disk_error(file);
}

}  // namespace tj::trainer
