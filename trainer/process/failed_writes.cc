#include "trainer/process/failed_writes.h"

#include <atomic>
#include <cerrno>
#include <csignal>

namespace tj::trainer {
namespace {
std::atomic<bool> ends_without_reader = false;  // as it began with, once the signal is ignored
}  // namespace

void outlive_broken_sockets() {
  if (std::signal(SIGPIPE, SIG_IGN) == SIG_DFL) ends_without_reader = true;
}

void end_where_nobody_reads(int error_number) {
  if (error_number != EPIPE || !ends_without_reader) return;
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
}

void outlive_file_size_limits() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace tj::trainer
