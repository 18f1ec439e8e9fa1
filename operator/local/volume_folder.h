// Makes the folder of a volume. An earlier run may have left a link in it: none leads out.
#pragma once
#include <filesystem>

#include "contract/result.h"

namespace tj {

/// `folder` lies in `volumes`. Fails with Code::invalid when it can't be made, or a link on the way
/// leads somewhere else; then nothing has been made.
Result<void> make_volume_folder(const std::filesystem::path& folder,
                                const std::filesystem::path& volumes);

}  // namespace tj
