#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "trainer/launch/unique_fd.h"

namespace tj::trainer {

Error read_error(const std::filesystem::path& path, int error_number) {
  const Code code = error_number == EACCES || error_number == EPERM ? Code::forbidden
                    : error_number == ENOENT                        ? Code::not_found
                                                                    : Code::invalid;
  return {.code = code,
          .message = std::string("can't be read: ") + std::strerror(error_number),
          .subject = path.string()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const UniqueFd descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open()) return read_error(path, errno);
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) return read_error(path, errno);
  if (S_ISDIR(status.st_mode)) return read_error(path, EISDIR);
  if (status.st_size == 0) return MappedFile({});
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value(), 0);
  if (memory == MAP_FAILED) return read_error(path, errno);
  return MappedFile({static_cast<const std::uint8_t*>(memory), size});
}

}  // namespace tj::trainer
