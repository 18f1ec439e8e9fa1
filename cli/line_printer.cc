#include "cli/line_printer.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "contract/launch_env.h"

namespace tj {
namespace {

// Foreground colours that are readable on black and on white; red is kept for failures.
constexpr std::array<std::string_view, 6> kColours = {"36", "35", "33", "32", "34", "96"};

}  // namespace

void LinePrinter::worker_line(int worker_index, std::string_view text) const {
  const std::string name = worker_index < 0 ? "pod" : "worker-" + std::to_string(worker_index);
  const std::string prefix = "[" + name + "]";
  std::string out = colour_ ? coloured(worker_index, prefix) : prefix;
  write_whole(out.append(" ").append(text).append("\n"));
}

void LinePrinter::line(std::string_view text) const { write_whole(std::string(text) + "\n"); }

void LinePrinter::write_whole(std::string_view text) const {
  while (!text.empty()) {
    const auto written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // nobody reads any more; the logs still hold everything
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string coloured(int worker_index, std::string_view text) {
  const auto colour =
      kColours[static_cast<std::size_t>(worker_index < 0 ? 0 : worker_index) % kColours.size()];
  std::string out = "\x1b[";
  return out.append(colour).append("m").append(text).append("\x1b[0m");
}

bool wants_colour(int fd, bool switched_off) {
  const bool asked_not_to = !process_env("NO_COLOR").value_or("").empty();
  return !switched_off && !asked_not_to && isatty(fd) == 1 && process_env("TERM") != "dumb";
}

}  // namespace tj
