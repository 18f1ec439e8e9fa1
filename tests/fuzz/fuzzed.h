// What the fuzzers share: an input as text or as a file, and texts that are compared.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace tj::fuzz {

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// A file without a disk, for what can only be read by path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    TJ_CHECK(descriptor_ >= 0, "memfd_create");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(descriptor_); }

  void write(std::string_view text) const {
    TJ_CHECK(::ftruncate(descriptor_, 0) == 0, "ftruncate");
    const auto written = ::pwrite(descriptor_, text.data(), text.size(), 0);
    TJ_CHECK(written == static_cast<ssize_t>(text.size()), "pwrite");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace tj::fuzz
