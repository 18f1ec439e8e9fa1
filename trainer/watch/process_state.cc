#include "trainer/watch/process_state.h"

#include <fstream>
#include <string>

namespace tj::trainer {

std::optional<char> process_state(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const auto name_end = line.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return std::nullopt;
  return line[name_end + 2];
}

}  // namespace tj::trainer
