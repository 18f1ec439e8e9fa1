#include "cli/trainer_program.h"

#include <filesystem>

#include "contract/launch_env.h"
#include "operator/local/pod_command.h"

namespace tj {

namespace fs = std::filesystem;

/// Where `tj` and `trainer` lie, installed side by side or in one build tree, so that a manifest's
/// `trainer` is found. TJ_TRAINER_PATH names another folder, or the program itself.
std::vector<std::string> program_folders() {
  std::vector<std::string> folders;
  std::error_code failure;
  const fs::path asked = process_env("TJ_TRAINER_PATH").value_or("");
  if (!asked.empty()) {
    folders.push_back(
        fs::absolute(fs::is_directory(asked, failure) ? asked : asked.parent_path()).string());
  }
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return folders;
  folders.push_back(self.parent_path().string());
  const fs::path sibling = self.parent_path().parent_path() / "trainer";
  if (fs::is_regular_file(sibling / "trainer", failure)) folders.push_back(sibling.string());
  return folders;
}

std::string find_trainer() {
  std::string path;
  for (const std::string& folder : program_folders()) path += folder + ":";
  return find_program("trainer",
                      path + process_env("PATH").value_or("/usr/local/bin:/usr/bin:/bin"));
}

}  // namespace tj
