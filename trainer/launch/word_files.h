// One private file per process for its last words, so that those of the first failure alone become
// the worker's.
#pragma once
#include <filesystem>
#include <string>

namespace tj::trainer {

class WordFiles {
 public:
  /// Makes a private folder in TMPDIR, /tmp or /dev/shm; without any, the processes' words are
  /// lost.
  WordFiles();
  ~WordFiles();
  WordFiles(const WordFiles&) = delete;
  WordFiles& operator=(const WordFiles&) = delete;

  /// Value of TRAININGJOB_TERMINATION_LOG for the process; /dev/null when there is no folder.
  std::string path_of(int local_rank) const;
  /// What the process left, at most kTerminationMessageBytesMax bytes; empty when nothing.
  std::string read(int local_rank) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tj::trainer
