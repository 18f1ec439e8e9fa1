#include "trainer/data/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "trainer/data/mapped_file.h"

namespace tj::trainer {

Result<TextFile> TextFile::open(const std::filesystem::path& path) {
  UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open()) return read_error(path, errno);
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) return read_error(path, errno);
  return TextFile(path, std::move(descriptor), status.st_size);
}

Result<std::string> TextFile::read(std::int64_t offset, std::int64_t count) const {
  const auto wanted = std::clamp<std::int64_t>(bytes_ - offset, 0, count);
  std::string text(static_cast<std::size_t>(wanted), '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const auto got = ::pread(descriptor_.value(), text.data() + filled, text.size() - filled,
                             offset + static_cast<std::int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return read_error(path_, errno);
    if (got == 0) {
      return Error{.code = Code::invalid,
                   .message = "at byte " +
                              std::to_string(offset + static_cast<std::int64_t>(filled)) +
                              ": the file ends here; it had " + std::to_string(bytes_) +
                              " bytes when it was opened",
                   .subject = path_.string()};
    }
    filled += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace tj::trainer
