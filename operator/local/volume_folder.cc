#include "operator/local/volume_folder.h"

#include <algorithm>

namespace tj {
namespace {
namespace fs = std::filesystem;

Error cannot_make(const fs::path& folder, const std::string& why) {
  return Error{.code = Code::invalid,
               .message = "cannot make the folder " + folder.string() + " of a volume: " + why,
               .subject = {},
               .retry_after = {}};
}

/// `volumes` is an absolute path without links.
bool lies_in(const fs::path& folder, const fs::path& volumes) {
  return std::ranges::mismatch(volumes, folder).in1 == volumes.end();
}

}  // namespace

Result<void> make_volume_folder(const fs::path& folder, const fs::path& volumes) {
  std::error_code failure;
  fs::create_directories(volumes, failure);
  const fs::path top = failure ? volumes : fs::canonical(volumes, failure);
  const fs::path real = failure ? folder : fs::weakly_canonical(folder, failure);
  if (!failure && !lies_in(real, top))
    return cannot_make(folder, "a link on the way leads to " + real.string());
  if (!failure) fs::create_directories(real, failure);
  if (failure) return cannot_make(folder, failure.message());
  return {};
}

}  // namespace tj
