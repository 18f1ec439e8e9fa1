#include "trainer/process/output_draft.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>

#include "trainer/process/durable_file.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

Error is_taken(const fs::path& out) {
  return {.code = Code::conflict,
          .message = "is there already; another name is needed",
          .subject = out.string()};
}

Error disk_error(const fs::path& out, const std::string& what, int error_number) {
  return {.code = Code::unavailable,
          .message = what + ": " + std::strerror(error_number),
          .subject = out.string()};
}

bool is_there(const fs::path& out) {
  std::error_code unreadable;
  return fs::exists(fs::symlink_status(out, unreadable));
}

/// Of a folder all that is below it, too.
Result<void> flush(const fs::path& path, const fs::path& out) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.open()) return disk_error(out, "can't be opened", errno);
  std::error_code unreadable;
  const bool is_folder = fs::is_directory(path, unreadable);
  if ((is_folder ? ::syncfs(fd.value()) : ::fsync(fd.value())) == 0) return {};
  return disk_error(out, "can't be flushed to the disk", errno);
}

/// Never over something else, where the file system can promise that.
Result<void> give_name(const fs::path& path, const fs::path& out) {
  if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, out.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return is_taken(out);
  if (errno != EINVAL && errno != ENOSYS) return disk_error(out, "can't be given its name", errno);
  if (is_there(out)) return is_taken(out);
  if (::rename(path.c_str(), out.c_str()) == 0) return {};
  return disk_error(out, "can't be given its name", errno);
}

}  // namespace

OutputDraft::OutputDraft(fs::path out, fs::path path)
    : out_(std::move(out)), path_(std::move(path)) {}

OutputDraft::OutputDraft(OutputDraft&& other) noexcept
    : out_(std::move(other.out_)), path_(std::exchange(other.path_, {})) {}

OutputDraft::~OutputDraft() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<OutputDraft> OutputDraft::begin(const fs::path& named) {
  // "pictures/" is the folder "pictures".
  const auto out = named.has_filename() ? named : named.parent_path();
  if (!out.has_filename())
    return Error{.code = Code::invalid,
                 .message = "is no name of a file or folder",
                 .subject = named.string()};
  if (is_there(out)) return is_taken(out);
  char suffix[24];
  std::snprintf(suffix, sizeof suffix, ".part-%08x", std::random_device()());
  return OutputDraft(out, out.string() + suffix);
}

Result<void> OutputDraft::commit() {
  if (const auto flushed = flush(path_, out_); !flushed) return flushed;
  if (const auto named = give_name(path_, out_); !named) return named;
  path_.clear();
  return sync_folder(out_.has_parent_path() ? out_.parent_path() : fs::path("."));
}

}  // namespace tj::trainer
