// The person's terminal while a command elsewhere has it: keys go there as they are pressed, and
// whatever happens, the terminal is put back.
#pragma once
#include <memory>

namespace tj {

/// Raw from its construction to its destruction, where `descriptor` is a terminal.
class RawTerminal {
 public:
  explicit RawTerminal(int descriptor);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  struct Saved;
  int descriptor_;
  std::unique_ptr<Saved> saved_;  // null: nothing was changed
};

}  // namespace tj
