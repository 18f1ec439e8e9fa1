// A text that is drawn again and again in the same place of a terminal. Each frame is one write
// that overwrites the one before line by line, so that nothing flickers; the cursor is never
// hidden, so that an end at any moment leaves the terminal as it was.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>

#include "cli/terminal_size.h"

namespace tj {

struct Frame {
  std::string bytes;
  std::size_t line_count = 0;
};
/// `text` over a frame of `lines_before` lines, cut to what fits.
Frame frame_of(const std::string& text, std::size_t lines_before, TerminalSize size);

class Screen {
 public:
  explicit Screen(int fd) : fd_(fd) {}
  /// A terminal that understands it.
  bool is_live() const;
  void draw(const std::string& text);

 private:
  int fd_;
  std::size_t line_count_ = 0;
};

/// Until the next look at what is followed.
void pause(std::chrono::milliseconds time);

}  // namespace tj
