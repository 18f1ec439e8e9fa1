#include "trainer/data/file_walk.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "trainer/process/data_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

class Walk {
 public:
  explicit Walk(bool is_recursive) : is_recursive_(is_recursive) {}

  Result<void> visit(const fs::path& folder) {
    std::error_code failure;
    const fs::path real = fs::canonical(folder, failure);
    if (failure) return read_error(folder, failure.value());
    if (!seen_.insert(real).second) return {};
    fs::directory_iterator entries(folder, failure);
    for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
      auto kept = visit_entry(entries->path());
      if (!kept) return kept;
    }
    if (failure) return read_error(folder, failure.value());
    return {};
  }
  std::vector<fs::path> sorted_files() && {
    std::ranges::sort(files_);
    return std::move(files_);
  }

 private:
  Result<void> visit_entry(const fs::path& path) {
    if (path.filename().string().starts_with('.')) return {};
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (status.type() == fs::file_type::not_found) return read_error(path, ENOENT);
    if (failure) return read_error(path, failure.value());
    if (fs::is_directory(status)) return is_recursive_ ? visit(path) : Result<void>();
    if (fs::is_regular_file(status)) files_.push_back(path);
    return {};
  }
  bool is_recursive_;
  std::set<fs::path> seen_;
  std::vector<fs::path> files_;
};

Result<std::vector<fs::path>> walk_from(const fs::path& folder, bool is_recursive) {
  Walk walk(is_recursive);
  if (const auto walked = walk.visit(folder); !walked) return walked.error();
  return std::move(walk).sorted_files();
}

}  // namespace

Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  return walk_from(folder, true);
}

Result<std::vector<fs::path>> files_in(const fs::path& folder) { return walk_from(folder, false); }

}  // namespace tj::trainer
