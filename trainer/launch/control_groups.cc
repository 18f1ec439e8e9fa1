#include "trainer/launch/control_groups.h"

#include <fstream>
#include <optional>
#include <string>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

bool lists(const std::string& controllers, std::string_view wanted) {
  return ("," + controllers + ",").find("," + std::string(wanted) + ",") != std::string::npos;
}

std::vector<fs::path> levels_from(fs::path group) {
  std::vector<fs::path> levels{group};
  while (!group.empty()) levels.push_back(group = group.parent_path());
  return levels;
}

/// The number behind `word` in a file of lines "word number"; none without file or word.
std::optional<long long> counter_in(const fs::path& path, std::string_view word) {
  std::ifstream file(path);
  std::string name;
  long long count = 0;
  while (file >> name >> count) {
    if (name == word) return count;
  }
  return std::nullopt;
}

}  // namespace

std::vector<ControlGroup> control_groups(const CgroupFiles& files, std::string_view controller) {
  std::vector<ControlGroup> groups;
  std::ifstream membership(files.membership);
  // Each line is "<number>:<controllers>:/<path>"; v2 has number 0 and no controllers.
  for (std::string line; std::getline(membership, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists(controllers, controller)) continue;
    groups.push_back({.controllers = controllers,
                      .levels = levels_from(fs::path(line.substr(second + 1)).relative_path())});
  }
  return groups;
}

long long out_of_memory_kills(const CgroupFiles& files) {
  for (const ControlGroup& group : control_groups(files, "memory")) {
    const bool is_v2 = group.controllers.empty();
    for (const fs::path& level : group.levels) {
      const fs::path folder = files.mount / group.controllers / level;
      const auto count =
          counter_in(folder / (is_v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
      if (count) return *count;  // the innermost that tells: those around it hold others, too
    }
  }
  return 0;
}

}  // namespace tj::trainer
