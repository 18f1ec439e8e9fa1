// What a person sees while a job runs: lines of workers with their name before them, and lines of
// tj itself. Each line is one write, so that lines never mix.
#pragma once
#include <string>
#include <string_view>

namespace tj {

class LinePrinter {
 public:
  LinePrinter(int fd, bool colour) : fd_(fd), colour_(colour) {}

  /// `[worker-0] text`. The colour depends on the index alone, so that it is the same in each run.
  void worker_line(int worker_index, std::string_view text) const;
  /// A line of tj's own.
  void line(std::string_view text) const;

 private:
  void write_whole(std::string_view text) const;
  int fd_;
  bool colour_;
};

/// `text` in the colour of a worker, and the terminal's own again.
std::string coloured(int worker_index, std::string_view text);

/// A terminal, NO_COLOR unset or empty (no-color.org), TERM not "dumb", and not switched off.
bool wants_colour(int fd, bool switched_off);

}  // namespace tj
