// Text on standard output while it is being made: whole characters, each as soon as it is there.
// Torch-free.
#pragma once
#include <string>
#include <string_view>

#include "contract/result.h"

namespace tj::trainer {

/// Makes valid UTF-8 of bytes that come piece by piece.
class Utf8Stream {
 public:
  /// What can be shown by now: all but a character of which the end is missing. What is no UTF-8
  /// becomes U+FFFD, as contract/utf8.h has it of the whole.
  std::string push(std::string_view bytes);
  /// What is left when nothing more comes.
  std::string finish();

 private:
  std::string held_;
};

class TextOutput {
 public:
  explicit TextOutput(int descriptor) : descriptor_(descriptor) {}

  /// At once. Fails with Code::unavailable when nobody reads, or the disk is full.
  Result<void> write(std::string_view bytes);
  /// The end of a text: what was held back, and the end of its line.
  Result<void> end_text();

 private:
  Result<void> show(const std::string& text);

  int descriptor_;
  Utf8Stream stream_;
  bool is_in_line_ = false;  // a line has begun, and not ended
};

}  // namespace tj::trainer
