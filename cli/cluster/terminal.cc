#include "cli/cluster/terminal.h"

#include <termios.h>
#include <unistd.h>

namespace tj {

struct RawTerminal::Saved {
  termios settings{};
};

RawTerminal::RawTerminal(int descriptor) : descriptor_(descriptor) {
  auto saved = std::make_unique<Saved>();
  if (::tcgetattr(descriptor_, &saved->settings) != 0) return;
  termios raw = saved->settings;
  ::cfmakeraw(&raw);
  if (::tcsetattr(descriptor_, TCSADRAIN, &raw) == 0) saved_ = std::move(saved);
}

RawTerminal::~RawTerminal() {
  if (saved_) ::tcsetattr(descriptor_, TCSADRAIN, &saved_->settings);
}

}  // namespace tj
