// A ZIP archive of uncompressed files, written front to back. What exceeds 4 GiB is said as ZIP64
// says it. Source: PKWARE, APPNOTE.TXT 6.3.10, section 4.3.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/process/byte_part.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {

/// The bytes of each file begin at a multiple of it.
inline constexpr std::uint64_t kZipAlignment = 64;

/// What becomes a file of the archive; the bytes stay the caller's.
struct ZipEntry {
  std::string name;
  std::vector<BytePart> parts;  // one behind the other
};

/// Reads all bytes twice: an entry's check sum stands before them. Fails as each_piece(), too.
Result<FileDigest> write_zip(const std::filesystem::path& path, std::span<const ZipEntry> entries);

/// An entry as the archive knows it.
struct ZipPlace {
  std::string name;
  std::uint32_t crc32 = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_at = 0;
};
/// What stands before the bytes of an entry, padding included.
std::string zip_local_header(const ZipPlace& place);
/// What stands behind all entries; its first byte is the archive's byte `begin`.
std::string zip_directory(std::span<const ZipPlace> places, std::uint64_t begin);

}  // namespace tj::trainer
