#include "trainer/process/last_words.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "contract/launch_env.h"
#include "contract/names.h"

namespace tj::trainer {
namespace {

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written_bytes = ::write(fd, text.data(), text.size());
    if (written_bytes <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written_bytes));
  }
}

}  // namespace

void write_last_words(const Outcome& outcome) noexcept {
  try {
    const auto chosen = process_env(names::kEnvTerminationLog);
    const std::string path = chosen.value_or(names::kTerminationLogDefault);
    // Kubelet makes the default file; outside of a pod it must not be made in /dev.
    const int create = chosen ? O_CREAT : 0;
    const int fd = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | create, 0644);
    if (fd < 0) return;
    write_all(fd, to_termination_message(outcome));
    ::close(fd);
  } catch (...) {
    // The words are lost, the exit code stays: nothing better can be done at the end of a process.
  }
}

}  // namespace tj::trainer
