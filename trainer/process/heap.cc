#include "trainer/process/heap.h"

#include <malloc.h>

namespace tj::trainer {

void keep_freed_memory() {
  constexpr int kTopPadBytes = 64 << 20;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);  // never
  ::mallopt(M_TOP_PAD, kTopPadBytes);
}

}  // namespace tj::trainer
