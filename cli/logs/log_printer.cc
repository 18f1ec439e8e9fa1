#include "cli/logs/log_printer.h"

#include <unistd.h>

#include <cerrno>

#include "cli/line_printer.h"
#include "cli/plain_text.h"

namespace tj {
namespace {

constexpr std::size_t kGatheredBytesMax = 64 * 1024;

int first_of(const RankSet& ranks) {
  int rank = 0;
  while (!ranks.empty() && !ranks.contains(rank)) ++rank;
  return rank;
}

/// False: the other end is closed.
bool write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string text_of(const FoldedLine& line, const LogStyle& style) {
  const std::string prefix = "[" + line.ranks.text() + "]";
  std::string out = style.colour ? coloured(first_of(line.ranks), prefix) : prefix;
  out += ' ';
  if (style.timestamps) out += format_log_time(line.time) + " ";
  if (style.for_terminal) {
    out += without_controls(line.text, /*with_colours=*/true);
    if (line.text.find('\x1b') != std::string::npos) out += "\x1b[0m";
  } else {
    out += line.text;
  }
  return out += '\n';
}

LogPrinter::LogPrinter(Target target, LogStyle style, FoldBounds fold)
    : target_(target),
      style_(style),
      folder_(fold, [this](const FoldedLine& line) { print(line); }) {}

void LogPrinter::print(const FoldedLine& line) {
  lines_ += static_cast<std::uint64_t>(line.ranks.size());
  gathered_ += text_of(line, style_);
  if (gathered_.size() >= kGatheredBytesMax) (void)flush();
}

void LogPrinter::note(std::string_view text) {
  folder_.flush();
  (void)flush();
  (void)write_whole(target_.notes_fd, without_controls(text) + "\n");
}

bool LogPrinter::flush() {
  if (is_read_ && !gathered_.empty()) is_read_ = write_whole(target_.fd, gathered_);
  gathered_.clear();
  return is_read_;
}

}  // namespace tj
