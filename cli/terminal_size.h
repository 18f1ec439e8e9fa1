// How large a person's terminal is.
#pragma once

namespace tj {

struct TerminalSize {
  int columns = 0;  // 0: it is no terminal, or does not say
  int rows = 0;
};
TerminalSize terminal_size(int descriptor);

}  // namespace tj
