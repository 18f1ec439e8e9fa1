#include "trainer/checkpoint/draft_file.h"

#include <unistd.h>

#include <string>

#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace fs = std::filesystem;

DraftFile::DraftFile(const fs::path& target)
    : target_(target),
      folder_(target.has_parent_path() ? target.parent_path() : fs::path(".")),
      path_(folder_ / ("." + target.filename().string() + ".draft-" + std::to_string(::getpid()))) {
}

DraftFile::~DraftFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

Error DraftFile::named(Error error) const {
  if (error.subject == path_.string()) error.subject = target_.string();
  return error;
}

Result<void> DraftFile::commit() {
  std::error_code failure;
  fs::rename(path_, target_, failure);
  if (failure)
    return Error{.code = Code::unavailable,
                 .message = "can't get its name: " + failure.message(),
                 .subject = target_.string()};
  path_.clear();
  return sync_folder(folder_);
}

}  // namespace tj::trainer
