// How far a command is, said on standard output: one line that is drawn anew on a terminal, a line
// now and then elsewhere.
#pragma once
#include <chrono>
#include <string>

namespace tj::trainer {

class ProgressLine {
 public:
  ProgressLine();
  /// From one show() to the next.
  std::chrono::milliseconds interval() const;
  void show(const std::string& text) const;
  /// What comes next begins a line of its own: with the last text on a terminal.
  void end(const std::string& last_text) const;
  /// To be put in front of what ends the command in the middle.
  const char* line_start() const { return is_terminal_ ? "\n" : ""; }

 private:
  bool is_terminal_;
};

}  // namespace tj::trainer
