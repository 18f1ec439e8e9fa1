#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>

#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {

// Of the thread that is about to touch a page. Volatile: the compiler sees nobody who reads it.
thread_local sigjmp_buf* volatile landing = nullptr;

void on_bus_error(int signal) {
  if (landing != nullptr) siglongjmp(*landing, 1);
  ::signal(signal, SIG_DFL);  // somebody else's: it faults again, and ends the process
}

void catch_bus_errors() {
  struct sigaction action {};
  action.sa_handler = on_bus_error;
  action.sa_flags = SA_NODEFER;  // a jump out of the handler leaves the signal unblocked
  ::sigaction(SIGBUS, &action, nullptr);
}

/// Holds no object with a destructor: a jump passes them by.
bool can_touch(const volatile std::uint8_t* byte) {
  sigjmp_buf here;
  if (sigsetjmp(here, /*savemask=*/0) != 0) {
    landing = nullptr;
    return false;
  }
  landing = &here;
  static_cast<void>(*byte);
  landing = nullptr;
  return true;
}

}  // namespace

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
  static std::once_flag is_caught;
  std::call_once(is_caught, catch_bus_errors);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.value(), 0);
  if (memory == MAP_FAILED) return read_error(path, errno);
  return MappedFile({static_cast<const std::uint8_t*>(memory), size});
}

std::optional<std::size_t> MappedFile::first_unreadable(std::size_t begin,
                                                        std::size_t count) const {
  static const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = begin; at < begin + count; at = (at / page_bytes + 1) * page_bytes) {
    if (!can_touch(bytes_.data() + at)) return at;
  }
  return std::nullopt;
}

}  // namespace tj::trainer
