// EBML, RFC 8794: elements of an id, a size and that many bytes. Both are numbers whose first byte
// says by its leading zeros how many bytes follow. Matroska, RFC 9559: all of the video is in one
// element, the segment.
#include "trainer/data/video/libav/matroska_size.h"

#include <bit>
#include <fstream>

namespace tj::trainer {
namespace {

constexpr std::uint64_t kSegment = 0x18538067;
constexpr int kElementsMax = 16;  // before the segment: a head, and room that was left free
constexpr int kIdBytesMax = 4, kSizeBytesMax = 8;

struct Number {
  std::uint64_t value = 0;  // with the mark of its length
  int bytes = 0;
};

std::optional<Number> next_number(std::istream& file, int bytes_max) {
  const int first = file.get();
  if (first == std::char_traits<char>::eof()) return std::nullopt;
  Number number{.value = static_cast<std::uint64_t>(first),
                .bytes = std::countl_zero(static_cast<std::uint8_t>(first)) + 1};
  if (number.bytes > bytes_max) return std::nullopt;
  for (int i = 1; i < number.bytes; ++i) {
    const int next = file.get();
    if (next == std::char_traits<char>::eof()) return std::nullopt;
    number.value = number.value << 8 | static_cast<std::uint64_t>(next);
  }
  return number;
}

}  // namespace

std::optional<std::int64_t> matroska_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  for (int i = 0; i < kElementsMax; ++i) {
    const auto id = next_number(file, kIdBytesMax);
    const auto size = next_number(file, kSizeBytesMax);
    if (!id || !size) return std::nullopt;
    const auto mask = (std::uint64_t{1} << (7 * size->bytes)) - 1;
    const auto bytes = size->value & mask;
    const bool is_known = bytes != mask;
    if (!is_known) return std::nullopt;
    const auto end = static_cast<std::int64_t>(file.tellg()) + static_cast<std::int64_t>(bytes);
    if (id->value == kSegment) return end;
    file.seekg(end);
  }
  return std::nullopt;
}

}  // namespace tj::trainer
