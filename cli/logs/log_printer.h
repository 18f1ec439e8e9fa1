// Where the lines of logs become output: folded, with ranks (and times) before them, in colours, in
// few large writes. The lines themselves are standard output; what tj has to say is standard error.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/logs/line_folder.h"

namespace tj {

struct LogStyle {
  bool colour = false;
  bool timestamps = false;
  bool for_terminal = false;  // control characters are replaced
};

/// "[0-3] text", with the time before it where that is asked for; ends with a newline.
std::string text_of(const FoldedLine& line, const LogStyle& style);

class LogPrinter {
 public:
  /// `fd` is for the lines, `notes_fd` for what tj says.
  struct Target {
    int fd = 1;
    int notes_fd = 2;
  };
  LogPrinter(Target target, LogStyle style, FoldBounds fold);
  LogPrinter(const LogPrinter&) = delete;
  LogPrinter& operator=(const LogPrinter&) = delete;

  LineFolder& folder() { return folder_; }
  /// A line of tj's own, after the lines that came before it.
  void note(std::string_view text);
  /// What is gathered is written. False: nobody reads any more.
  bool flush();
  bool is_read() const { return is_read_; }
  /// Of ranks, not of lines: a folded line counts for each.
  std::uint64_t lines() const { return lines_; }

 private:
  void print(const FoldedLine& line);

  Target target_;
  LogStyle style_;
  LineFolder folder_;
  std::string gathered_;
  std::uint64_t lines_ = 0;
  bool is_read_ = true;
};

}  // namespace tj
