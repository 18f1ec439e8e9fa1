#include "trainer/process/process_state.h"

#include <fstream>
#include <sstream>
#include <string>

namespace tj::trainer {

/// "pid (name) state ppid pgrp ..."; the name may hold spaces, brackets and line ends.
std::optional<ProcessStat> process_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream read;
  read << file.rdbuf();  // a process that ends here fails the read: nothing is thrown
  const std::string text = read.str();
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  std::istringstream fields(text.substr(name_end + 1));
  if (!(fields >> stat.state >> stat.parent >> stat.group)) return std::nullopt;
  return stat;
}

std::optional<char> process_state(pid_t pid) {
  const auto stat = process_stat(pid);
  return stat ? std::optional(stat->state) : std::nullopt;
}

}  // namespace tj::trainer
