// trainer-engine: what `trainer train ...` becomes, and the part of `trainer check` that needs the
// other ranks. The first argument is the word "train", which may be missing, or "check".
#include <unistd.h>

#include <string_view>

#include "trainer/check/engine_part.h"
#include "trainer/train/engine.h"

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const int skipped = command == "train" ? 1 : 0;
  // Everything said is written, and everything saved is on the disk: the destructors of libtorch's
  // threads and sockets could only be slow, or wait for a rank that is gone.
  ::_exit(command == "check" ? tj::trainer::run_check_engine()
                             : tj::trainer::run_engine(argc - skipped, argv + skipped));
}
