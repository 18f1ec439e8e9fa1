#include "trainer/process/byte_part.h"

#include <algorithm>
#include <vector>

namespace tj::trainer {
namespace {
constexpr std::int64_t kPieceBytesMax = 1 << 20;
}  // namespace

std::uint64_t bytes_in(const BytePart& part) {
  if (const auto* const memory = std::get_if<std::span<const std::byte>>(&part))
    return memory->size();
  return static_cast<std::uint64_t>(std::get<FileRange>(part).bytes);
}

Result<void> each_piece(const BytePart& part,
                        const std::function<Result<void>(std::span<const std::byte>)>& take) {
  if (const auto* const memory = std::get_if<std::span<const std::byte>>(&part))
    return take(*memory);
  const auto& range = std::get<FileRange>(part);
  std::vector<std::byte> room(static_cast<std::size_t>(std::min(range.bytes, kPieceBytesMax)));
  for (std::int64_t done = 0; done < range.bytes;) {
    const auto count = std::min(range.bytes - done, kPieceBytesMax);
    const auto piece = std::span(room).first(static_cast<std::size_t>(count));
    if (const auto read = range.file->read(range.begin + done, piece); !read) return read;
    if (const auto taken = take(piece); !taken) return taken;
    done += count;
  }
  return {};
}

}  // namespace tj::trainer
