// Which files lie below a folder, in an order that does not depend on the file system.
#pragma once
#include <filesystem>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

/// Every regular file below `folder`, sorted by path. Hidden names are skipped (a ConfigMap volume
/// keeps its copies in one); links to folders are followed, each real folder once, so that a loop
/// of links ends. Fails with the name of what can't be read.
Result<std::vector<std::filesystem::path>> files_below(const std::filesystem::path& folder);

/// The regular files in `folder` itself, sorted; hidden names are skipped.
Result<std::vector<std::filesystem::path>> files_in(const std::filesystem::path& folder);

}  // namespace tj::trainer
