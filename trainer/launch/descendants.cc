#include "trainer/launch/descendants.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "trainer/process/process_state.h"

namespace tj::trainer {
void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<ChildProcess> child_processes() {
  std::vector<ChildProcess> children;
  const pid_t self = ::getpid();
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = static_cast<pid_t>(std::atoi(name.c_str()));
    const auto stat = process_stat(pid);
    if (stat && stat->parent == self)
      children.push_back({.pid = pid, .group = stat->group, .zombie = stat->state == 'Z'});
  }
  return children;
}

}  // namespace tj::trainer
