#include "trainer/launch/descendants.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

namespace tj::trainer {
namespace {

struct Stat {
  ChildProcess process;
  pid_t parent = 0;
};

/// proc(5): "pid (name) state ppid pgrp ..."; the name may hold spaces and brackets.
std::optional<Stat> read_stat(const std::filesystem::path& process_folder) {
  std::ifstream file(process_folder / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  Stat stat;
  char state = 0;
  std::istringstream fields(text.substr(name_end + 1));
  fields >> state >> stat.parent >> stat.process.group;
  stat.process.pid = static_cast<pid_t>(std::atoi(text.c_str()));
  stat.process.zombie = state == 'Z';
  return stat;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<ChildProcess> child_processes() {
  std::vector<ChildProcess> children;
  const pid_t self = ::getpid();
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = read_stat(entry.path());
    if (stat && stat->parent == self) children.push_back(stat->process);
  }
  return children;
}

}  // namespace tj::trainer
