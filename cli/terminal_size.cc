#include "cli/terminal_size.h"

#include <sys/ioctl.h>

namespace tj {

TerminalSize terminal_size(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

}  // namespace tj
