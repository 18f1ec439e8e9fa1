// trainer-engine: what `trainer train ...` becomes. The first argument may be the word "train".
#include <unistd.h>

#include <string_view>

#include "trainer/train/engine.h"

int main(int argc, char** argv) {
  const int skipped = argc > 1 && std::string_view(argv[1]) == "train" ? 1 : 0;
  // Everything said is written, and everything saved is on the disk: the destructors of libtorch's
  // threads and sockets could only be slow, or wait for a rank that is gone.
  ::_exit(tj::trainer::run_engine(argc - skipped, argv + skipped));
}
