#include "trainer/process/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace tj::trainer {
namespace {

constexpr std::chrono::milliseconds kBarInterval{250};
constexpr std::chrono::milliseconds kLineInterval{5000};

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDOUT_FILENO) != 0) {}

std::chrono::milliseconds ProgressLine::interval() const {
  return is_terminal_ ? kBarInterval : kLineInterval;
}

void ProgressLine::show(const std::string& text) const {
  std::printf(is_terminal_ ? "\r%s\x1b[K" : "%s\n", text.c_str());
  std::fflush(stdout);
}

void ProgressLine::end(const std::string& last_text) const {
  if (!is_terminal_) return;
  show(last_text);
  std::fputc('\n', stdout);
}

}  // namespace tj::trainer
