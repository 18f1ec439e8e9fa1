#include "operator/loop/resident_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace tj {
namespace {

// A page of a list must not leave a hole in the heap; left to itself the threshold grows with use.
constexpr int kMappedBytesMin = 64 * 1024;

/// An entry of /proc/self/smaps, see proc_pid_smaps(5).
struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_read_only_file = false;
  long written_kb = 0;  // of its own, no longer the file's
};

/// Absent: `line` says something of the mapping before.
std::optional<Mapping> read_header(const std::string& line) {
  Mapping mapping;
  char permissions[5] = {};
  unsigned long inode = 0;
  const int fields = std::sscanf(line.c_str(), "%lx-%lx %4s %*x %*s %lu", &mapping.begin,
                                 &mapping.end, permissions, &inode);
  if (fields != 4) return std::nullopt;
  mapping.is_read_only_file = inode != 0 && permissions[1] == '-' && permissions[3] == 'p';
  return mapping;
}

}  // namespace

void set_up_heap() {
  mallopt(M_ARENA_MAX, 1);  // two threads: a heap for each would hold what the other gave back
  mallopt(M_MMAP_THRESHOLD, kMappedBytesMin);
}

void trim_heap() { malloc_trim(0); }

void drop_clean_file_pages() {
  std::ifstream file("/proc/self/smaps");
  std::stringstream smaps;  // read whole: what follows changes it
  smaps << file.rdbuf();
  Mapping mapping;
  for (std::string line; std::getline(smaps, line);) {
    if (const auto next = read_header(line)) {
      mapping = *next;
      continue;
    }
    long kb = 0;
    const bool is_written = std::sscanf(line.c_str(), "Anonymous: %ld kB", &kb) == 1 ||
                            std::sscanf(line.c_str(), "Private_Dirty: %ld kB", &kb) == 1;
    if (is_written) mapping.written_kb += kb;
    const bool is_last_line = line.starts_with("VmFlags:");
    if (!is_last_line || !mapping.is_read_only_file || mapping.written_kb > 0) continue;
    // Without effect where it is refused.
    madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

}  // namespace tj
