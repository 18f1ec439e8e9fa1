#include "trainer/launch/word_files.h"

#include <cstdlib>
#include <fstream>

#include "contract/launch_env.h"
#include "contract/outcome.h"

namespace tj::trainer {

WordFiles::WordFiles() {
  for (const std::string& parent :
       {process_env("TMPDIR").value_or(""), std::string("/tmp"), std::string("/dev/shm")}) {
    if (parent.empty()) continue;
    std::string pattern = parent + "/trainer-launch-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) continue;
    folder_ = pattern;
    return;
  }
}

WordFiles::~WordFiles() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string WordFiles::path_of(int local_rank) const {
  if (folder_.empty()) return "/dev/null";
  return (folder_ / ("local-rank-" + std::to_string(local_rank))).string();
}

std::string WordFiles::read(int local_rank) const {
  if (folder_.empty()) return "";
  std::ifstream file(path_of(local_rank), std::ios::binary);
  std::string words(kTerminationMessageBytesMax, '\0');
  file.read(words.data(), static_cast<std::streamsize>(words.size()));
  words.resize(static_cast<std::size_t>(file.gcount()));
  return words;
}

}  // namespace tj::trainer
