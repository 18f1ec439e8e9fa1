#include "cli/copied_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace tj {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLeftOutMax = 20;  // that are named
constexpr const char* kPart = ".part";

Error wrong(const fs::path& path, const std::string& message) {
  return Error{Code::invalid, message, path.string(), {}};
}

Error failed(const fs::path& path, const std::string& what) {
  return Error{Code::internal, what + ": " + std::strerror(errno), path.string(), {}};
}

fs::path part_of(const fs::path& path) { return path.string() + kPart; }

}  // namespace

CopiedTree::CopiedTree(fs::path target, std::string base)
    : target_(std::move(target)), base_(std::move(base)) {}

CopiedTree::~CopiedTree() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  std::error_code ignored;
  fs::remove(part_of(path_), ignored);
}

TarReader::Handlers CopiedTree::handlers() {
  return {.on_entry = [this](const TarEntry& entry) { return begin(entry); },
          .on_bytes = [this](std::string_view bytes) { return write(bytes); },
          .on_end = [this] { return end(); }};
}

Result<fs::path> CopiedTree::place_of(const std::string& name) const {
  const auto refused = [&name] {
    return Error{
        Code::invalid, "the archive holds a path that leads elsewhere; it is not copied", name, {}};
  };
  if (name.starts_with('/') || name.find('\0') != std::string::npos) return refused();
  fs::path place = target_;
  bool is_base = base_ != ".";
  for (const fs::path& part : fs::path(name)) {
    if (part == ".." || part == "/") return refused();
    if (part == "." || part.empty()) continue;
    if (is_base && part != base_) return refused();
    if (!is_base) place /= part;
    is_base = false;
  }
  if (is_base) return refused();
  return place;
}

/// Each folder from the target on; a link in the way would lead elsewhere.
Result<void> CopiedTree::make_folders(const fs::path& folder) const {
  std::error_code error;
  fs::path so_far = target_;
  fs::path rest = folder.lexically_relative(target_);
  if (rest.empty() || rest == "..") return {};
  for (const fs::path& part : rest) {
    if (part != ".") so_far /= part;
    const bool is_target = so_far == target_;
    const auto status = is_target ? fs::status(so_far, error) : fs::symlink_status(so_far, error);
    if (fs::is_directory(status)) continue;
    if (fs::exists(status)) return wrong(so_far, "is in the way: it is no folder");
    if (!fs::create_directory(so_far, error) && error)
      return wrong(so_far, "can't be made: " + error.message());
  }
  return {};
}

void CopiedTree::leave_out(const std::string& what) {
  ++left_out_count_;
  if (left_out_.size() < kLeftOutMax) left_out_.push_back(what);
}

Result<void> CopiedTree::begin(const TarEntry& entry) {
  using enum TarEntry::Kind;
  const auto place = place_of(entry.name);
  if (!place) return place.error();
  if (entry.kind == symbolic_link) leave_out(entry.name + ": a symbolic link to " + entry.link);
  if (entry.kind == hard_link) leave_out(entry.name + ": a second name of " + entry.link);
  if (entry.kind == other) leave_out(entry.name + ": neither a file nor a folder");
  if (entry.kind == folder) return make_folders(*place);
  if (entry.kind != file) return {};
  const Result<void> made = *place == target_ ? Result<void>() : make_folders(place->parent_path());
  if (!made) return made.error();
  path_ = *place;
  std::error_code ignored;
  if (fs::is_directory(fs::symlink_status(path_, ignored)))
    return wrong(path_, "is a folder; the archive has a file of this name");
  fs::remove(part_of(path_), ignored);
  descriptor_ = ::open(part_of(path_).c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC,
                       static_cast<mode_t>(entry.mode | S_IWUSR));
  return descriptor_ < 0 ? Result<void>(failed(path_, "can't be written")) : Result<void>();
}

Result<void> CopiedTree::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(path_, "can't be written");
    bytes_ += static_cast<std::uint64_t>(count);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> CopiedTree::end() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) return failed(path_, "can't be written");
  if (::rename(part_of(path_).c_str(), path_.c_str()) != 0)
    return failed(path_, "can't be given its name");
  ++files_;
  return {};
}

}  // namespace tj
