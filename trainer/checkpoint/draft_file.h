// A file that appears whole or not at all, in place of what had its name.
#pragma once
#include <filesystem>

#include "contract/result.h"

namespace tj::trainer {

/// A file beside the one it becomes; it goes with the object unless it got its name.
class DraftFile {
 public:
  explicit DraftFile(const std::filesystem::path& target);
  ~DraftFile();
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;

  /// Where to write it; nothing is there yet.
  const std::filesystem::path& path() const { return path_; }
  /// An error of writing it, with the name that it was to get: its own one goes with it.
  Error named(Error error) const;
  /// Gives it its name, and makes that durable. Once.
  Result<void> commit();

 private:
  std::filesystem::path target_, folder_, path_;
};

}  // namespace tj::trainer
