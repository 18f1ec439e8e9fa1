#include "trainer/process/data_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tj::trainer {
namespace {

/// Of open files, as far as this process may: a folder may hold more than the usual 1024.
bool raise_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

UniqueFd open_to_read(const std::filesystem::path& path) {
  UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (descriptor.open() || errno != EMFILE) return descriptor;
  if (!raise_limit()) {
    errno = EMFILE;
    return descriptor;
  }
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

Error read_error(const std::filesystem::path& path, int error_number) {
  const Code code = error_number == EACCES || error_number == EPERM ? Code::forbidden
                    : error_number == ENOENT                        ? Code::not_found
                                                                    : Code::invalid;
  const std::string right = code == Code::forbidden ? "; user " + std::to_string(::geteuid()) +
                                                          " needs the right to read it"
                                                    : "";
  return {.code = code,
          .message = std::string("can't be read: ") + std::strerror(error_number) + right,
          .subject = path.string()};
}

Result<DataFile> DataFile::open(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return read_error(path, errno);
  if (S_ISDIR(status.st_mode)) return read_error(path, EISDIR);
  // Before it is opened: that would wait for who writes into a pipe.
  if (!S_ISREG(status.st_mode))
    return Error{.code = Code::invalid,
                 .message = "is a pipe or a device; it must be a file, which is read at any place",
                 .subject = path.string()};
  UniqueFd descriptor = open_to_read(path);
  if (!descriptor.open()) return read_error(path, errno);
  if (::fstat(descriptor.value(), &status) != 0) return read_error(path, errno);
  return DataFile(path, std::move(descriptor), status.st_size);
}

Result<void> DataFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto got = ::pread(descriptor_.value(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return Error{.code = Code::internal,
                   .message = "can't be read at byte " + std::to_string(offset) + ": " +
                              (got == 0 ? "the file has been cut since it was opened"
                                        : std::strerror(errno)),
                   .subject = path_.string()};
    }
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += got;
  }
  return {};
}

Result<std::string> DataFile::read(std::int64_t offset, std::int64_t count) const {
  const auto wanted = std::clamp<std::int64_t>(bytes_ - offset, 0, count);
  std::string text(static_cast<std::size_t>(wanted), '\0');
  const auto done = read(offset, std::as_writable_bytes(std::span(text)));
  if (!done) return done.error();
  return text;
}

}  // namespace tj::trainer
