// A file or a folder that appears under its name when it is whole: until then it has another one,
// and it goes with its owner. What a kill leaves is OUT.part-*, and harms nobody.
#pragma once
#include <filesystem>

#include "contract/result.h"

namespace tj::trainer {

class OutputDraft {
 public:
  /// Makes nothing yet. Fails with Code::conflict where there is something of that name.
  static Result<OutputDraft> begin(const std::filesystem::path& out);
  /// Where the owner writes it.
  const std::filesystem::path& path() const { return path_; }
  /// What it becomes.
  const std::filesystem::path& out() const { return out_; }
  /// Flushes it to the disk and gives it its name. Fails with Code::conflict where something has
  /// that name by now.
  Result<void> commit();

  OutputDraft(OutputDraft&& other) noexcept;
  OutputDraft& operator=(OutputDraft&&) = delete;
  ~OutputDraft();

 private:
  OutputDraft(std::filesystem::path out, std::filesystem::path path);
  std::filesystem::path out_;
  std::filesystem::path path_;  // empty once committed
};

}  // namespace tj::trainer
