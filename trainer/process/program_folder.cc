#include "trainer/process/program_folder.h"

namespace tj::trainer {

std::filesystem::path program_folder() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/exe", unreadable).parent_path();
}

}  // namespace tj::trainer
